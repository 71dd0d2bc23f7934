-- run/step
UPDATE surefoot.run AS r SET
    revision = x.revision, seq = x.seq, journal_bytes = x.journal_bytes, failures = x.failures,
    step_attempt = x.step_attempt, deadline = x.deadline, charged = x.charged,
    last_failure = x.last_failure
FROM unnest(
    $1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[],
    $8::text[], $9::text[]
) AS x (
    id, revision, seq, journal_bytes, failures, step_attempt, deadline, charged, last_failure
) WHERE r.id = x.id
