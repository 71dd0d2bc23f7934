-- retention/drop_journals
DELETE FROM journal WHERE run IN (SELECT value FROM json_each(?))
