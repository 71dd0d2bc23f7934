-- run/step
UPDATE surefoot.run AS r SET
    revision = x.revision, seq = x.seq, journal_bytes = x.journal_bytes, failures = x.failures,
    step_attempt = x.step_attempt, deadline = x.deadline, charged = x.charged,
    last_failure = x.last_failure
FROM unnest($1::surefoot.run[]) AS x WHERE r.id = x.id
