-- run/insert
INSERT INTO surefoot.run (
    id, app, scope, workflow, version, footprint, mode, event, trigger_kind, occurred_at, root, parent_run,
    parent_step, parent_index, parent_depth, created_at, generation, revision, seq, journal_bytes, failures,
    step_attempt, deadline, charged, last_failure, lease_until, lease_length, attempt, started_at, ended_at,
    state, claimable_at, lease_owner, claim_nonce, wake_at, wait_app_wide, wait_scope, wait_kind, wait_key,
    effect_step, effect_action, effect_state, effect_since, effect_evidence, effectful, cancel, detail,
    signal, resume
) SELECT
    x.id, x.app, x.scope, x.workflow, x.version, x.footprint, x.mode, x.event, x.trigger_kind, x.occurred_at,
    x.root, x.parent_run, x.parent_step, x.parent_index, x.parent_depth, x.created_at, x.generation,
    x.revision, x.seq, x.journal_bytes, x.failures, x.step_attempt, x.deadline, x.charged, x.last_failure,
    x.lease_until, x.lease_length, x.attempt, x.started_at, x.ended_at, x.state, x.claimable_at,
    x.lease_owner, x.claim_nonce, x.wake_at, x.wait_app_wide, x.wait_scope, x.wait_kind, x.wait_key,
    x.effect_step, x.effect_action, x.effect_state, x.effect_since, x.effect_evidence, x.effectful, x.cancel,
    x.detail, x.signal, x.resume
FROM unnest($1::surefoot.run[]) AS x
