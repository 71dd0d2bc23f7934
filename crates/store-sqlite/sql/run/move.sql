-- run/move
WITH x (
    no, generation, revision, seq, journal_bytes, failures, step_attempt, deadline, charged,
    last_failure,
    attempt, started_at, ended_at, state, claimable_at, lease_owner, lease_length, claim_nonce,
    wake_at, wait_app_wide, wait_scope, wait_kind, wait_key,
    effect_step, effect_action, effect_state, effect_since, effect_evidence,
    cancel, detail, signal, resume
) AS (VALUES /*rows*/)
UPDATE surefoot_run AS run SET
    generation = x.generation, revision = x.revision, seq = x.seq, journal_bytes = x.journal_bytes,
    failures = x.failures, step_attempt = x.step_attempt, deadline = x.deadline,
    charged = x.charged, last_failure = x.last_failure, attempt = x.attempt, started_at = x.started_at,
    ended_at = x.ended_at, state = x.state, claimable_at = x.claimable_at,
    lease_owner = x.lease_owner, lease_length = x.lease_length, claim_nonce = x.claim_nonce,
    wake_at = x.wake_at, wait_app_wide = x.wait_app_wide, wait_scope = x.wait_scope,
    wait_kind = x.wait_kind, wait_key = x.wait_key,
    effect_step = x.effect_step, effect_action = x.effect_action, effect_state = x.effect_state,
    effect_since = x.effect_since, effect_evidence = x.effect_evidence,
    cancel = x.cancel, detail = x.detail, signal = x.signal, resume = x.resume
FROM x WHERE run.no = x.no
