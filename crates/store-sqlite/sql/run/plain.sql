-- run/plain
-- How many of these runs are what a step was decided on, and have nothing that a step does not look after.
WITH x (id, generation, revision, claimable_at, lease_owner, lease_length) AS (VALUES /*rows*/)
SELECT count(*) AS plain FROM x CROSS JOIN surefoot_run AS run ON run.id = x.id
WHERE run.generation = x.generation AND run.revision = x.revision AND run.state = 'running'
    AND run.claimable_at = x.claimable_at AND run.lease_owner = x.lease_owner
    AND run.lease_length = x.lease_length AND run.cancel IS NULL AND run.effect_state IS NULL
    AND run.signal IS NULL AND run.resume IS NULL
