-- run/journal_append
INSERT INTO surefoot_journal (run, seq, count, generation, at, facts)
SELECT * FROM (VALUES /*rows*/) WHERE column1 IS NOT NULL
