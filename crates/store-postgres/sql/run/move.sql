-- run/move
UPDATE surefoot.run AS r SET
    generation = x.generation, revision = x.revision, seq = x.seq,
    journal_bytes = x.journal_bytes, failures = x.failures, step_attempt = x.step_attempt,
    deadline = x.deadline, charged = x.charged, last_failure = x.last_failure,
    lease_until = x.lease_until, lease_length = x.lease_length, attempt = x.attempt,
    started_at = x.started_at, ended_at = x.ended_at, state = x.state,
    claimable_at = x.claimable_at, wake_at = x.wake_at, detail = x.detail,
    lease_owner = x.lease_owner, claim_nonce = x.claim_nonce, wait_app_wide = x.wait_app_wide,
    wait_scope = x.wait_scope, wait_kind = x.wait_kind, wait_key = x.wait_key,
    effect_step = x.effect_step, effect_action = x.effect_action, effect_state = x.effect_state,
    effect_since = x.effect_since, effect_evidence = x.effect_evidence,
    effectful = x.effect_step IS NOT NULL OR (x.state = 'running' AND r.effectful),
    cancel = x.cancel, signal = x.signal, resume = x.resume
FROM unnest($1::surefoot.run[]) AS x WHERE r.id = x.id
