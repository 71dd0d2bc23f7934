-- retention/drop_runs
DELETE FROM run WHERE no IN (SELECT value FROM json_each(?))
