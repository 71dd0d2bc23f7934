-- retention/keep_runs
-- Nothing moves them while this transaction goes on. Those that somebody else has are not among the locked ones.
WITH kept AS MATERIALIZED (
    SELECT id FROM surefoot.run WHERE id = ANY($1) FOR SHARE SKIP LOCKED
)
SELECT run.id FROM surefoot.run
WHERE run.id = ANY($1) AND (run.id IN (SELECT id FROM kept)) IS NOT TRUE
