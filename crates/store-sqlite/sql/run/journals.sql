-- run/journals
-- The whole journals of some runs.
SELECT run, seq, generation, at, facts FROM surefoot_journal WHERE run IN (/*rows*/) ORDER BY run, seq
