-- run/insert
INSERT INTO surefoot.run (
    id, app, scope, workflow, version, footprint, mode, event, trigger_kind, occurred_at, root,
    parent_run, parent_step, parent_index, parent_depth, created_at, generation, revision, seq,
    journal_bytes, failures, step_attempt, deadline, charged, last_failure, lease_until,
    lease_length, attempt, started_at, ended_at, state, claimable_at, wake_at, detail,
    lease_owner, claim_nonce, wait_app_wide, wait_scope, wait_kind, wait_key, effect_step,
    effect_action, effect_state, effect_since, effect_evidence, cancel, signal, resume
) SELECT * FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::text[],
    $8::uuid[], $9::text[], $10::bigint[], $11::uuid[], $12::uuid[], $13::text[], $14::bigint[],
    $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[],
    $21::bigint[], $22::bigint[], $23::text[], $24::text[], $25::text[], $26::bigint[],
    $27::bigint[], $28::bigint[], $29::bigint[], $30::bigint[], $31::text[], $32::bigint[],
    $33::bigint[], $34::text[], $35::uuid[], $36::bigint[], $37::boolean[], $38::text[],
    $39::text[], $40::text[], $41::text[], $42::text[], $43::text[], $44::bigint[], $45::text[],
    $46::text[], $47::bigint[], $48::text[]
)
