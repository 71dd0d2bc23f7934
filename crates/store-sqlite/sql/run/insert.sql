-- run/insert
INSERT INTO surefoot_run (
    id, app, scope, workflow, version, footprint, mode, event, trigger_kind, occurred_at,
    root, parent_run, parent_step, parent_index, parent_depth, created_at,
    generation, revision, seq, journal_bytes, failures, step_attempt, deadline, charged,
    last_failure,
    attempt, started_at, ended_at, state, claimable_at, lease_owner, lease_length, claim_nonce,
    wake_at, wait_app_wide, wait_scope, wait_kind, wait_key,
    effect_step, effect_action, effect_state, effect_since, effect_evidence,
    cancel, detail, signal, resume
) SELECT * FROM (VALUES /*rows*/) WHERE column1 IS NOT NULL
