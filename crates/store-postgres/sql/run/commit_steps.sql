-- run/commit_steps
-- Steps, written at once. A row that somebody has locked is passed over.
-- `(… IN (SELECT …)) IS TRUE` keeps the sub-select a hashed one, and `(…) IS TRUE` keeps other indexes out of the way,
-- whatever the planner believes of their sizes.
WITH clock AS MATERIALIZED (
    SELECT surefoot.clock() + $2 AS now
), locked AS MATERIALIZED (
    SELECT r.id, r.generation, r.revision,
        (r.state = 'running' AND r.signal IS NULL AND r.resume IS NULL AND r.cancel IS NULL AND r.effect_state IS NULL) AS plain
    FROM surefoot.run AS r WHERE r.id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED
), written AS (
    UPDATE surefoot.run AS r SET
    revision = r.revision + 1, seq = x.seq, journal_bytes = x.journal_bytes,
    failures = x.failures, step_attempt = x.step_attempt, deadline = x.deadline,
    charged = x.charged, last_failure = x.last_failure
    FROM unnest($3::surefoot.after[]) WITH ORDINALITY AS x
    WHERE r.id = x.id AND r.generation = x.generation AND r.revision = x.revision
        AND (r.state = 'running' AND r.signal IS NULL AND r.resume IS NULL AND r.cancel IS NULL AND r.effect_state IS NULL) IS TRUE
        AND (x.id IN (SELECT id FROM locked)) IS TRUE
    RETURNING x.ordinality AS ord, r.lease_until, r.lease_length
), journal AS (
    INSERT INTO surefoot.journal (run, seq, count, generation, at, facts)
    SELECT x.run, x.seq, x.count, x.generation, (SELECT now FROM clock), x.facts
    FROM unnest($4::surefoot.facts[]) AS x WHERE (x.entry IN (SELECT ord FROM written)) IS TRUE
)
SELECT applied.*, other.*, (SELECT now FROM clock) AS now
FROM (
    SELECT coalesce(array_agg(ord), '{}') AS applied, coalesce(array_agg(lease_until), '{}') AS untils,
        coalesce(array_agg(lease_length), '{}') AS lengths
    FROM written
) AS applied
LEFT JOIN (
    SELECT coalesce(array_agg(id), '{}') AS locked, coalesce(array_agg(generation), '{}') AS generations,
        coalesce(array_agg(revision), '{}') AS revisions, coalesce(array_agg(plain), '{}') AS plain
    FROM locked
) AS other ON cardinality(applied.applied) < cardinality($1)
