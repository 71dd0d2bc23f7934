-- run/journal_append
INSERT INTO journal (run, seq, count, generation, at, facts) VALUES /*rows*/
