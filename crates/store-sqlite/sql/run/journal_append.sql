-- run/journal_append
INSERT INTO surefoot_journal (run, seq, count, generation, at, facts) VALUES /*rows*/
