-- run/journals
-- The whole journals of some runs.
SELECT run, seq, generation, at, facts FROM surefoot.journal WHERE run = ANY ($1) ORDER BY run, seq
