-- retention/drop_runs
DELETE FROM surefoot_run WHERE no IN (SELECT value FROM json_each(?))
