-- run/plain_journal
WITH x (id, seq, count, generation, at, facts) AS (VALUES /*rows*/)
INSERT INTO surefoot_journal (run, seq, count, generation, at, facts)
SELECT run.no, x.seq, x.count, x.generation, x.at, x.facts
FROM x CROSS JOIN surefoot_run AS run ON run.id = x.id
