-- retention/drop_journals
DELETE FROM surefoot_journal WHERE run IN (SELECT value FROM json_each(?))
