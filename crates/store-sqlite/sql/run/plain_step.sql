-- run/plain_step
WITH x (id, revision, seq, journal_bytes, failures, step_attempt, deadline, charged, last_failure)
AS (VALUES /*rows*/)
UPDATE surefoot_run AS run SET
    revision = x.revision, seq = x.seq, journal_bytes = x.journal_bytes, failures = x.failures,
    step_attempt = x.step_attempt, deadline = x.deadline, charged = x.charged,
    last_failure = x.last_failure
FROM x WHERE run.id = x.id
