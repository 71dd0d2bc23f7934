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
FROM unnest(
    $1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
    $7::bigint[], $8::text[], $9::text[], $10::text[], $11::bigint[], $12::bigint[],
    $13::bigint[], $14::bigint[], $15::bigint[], $16::text[], $17::bigint[], $18::bigint[],
    $19::text[], $20::uuid[], $21::bigint[], $22::boolean[], $23::text[], $24::text[],
    $25::text[], $26::text[], $27::text[], $28::text[], $29::bigint[], $30::text[], $31::text[],
    $32::bigint[], $33::text[]
) AS x (
    id, generation, revision, seq, journal_bytes, failures, step_attempt, deadline, charged,
    last_failure, lease_until, lease_length, attempt, started_at, ended_at, state, claimable_at,
    wake_at, detail, lease_owner, claim_nonce, wait_app_wide, wait_scope, wait_kind, wait_key,
    effect_step, effect_action, effect_state, effect_since, effect_evidence, cancel, signal,
    resume
) WHERE r.id = x.id
