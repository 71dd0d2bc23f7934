-- retention/drop_journals
DELETE FROM surefoot.journal WHERE run = ANY($1)
