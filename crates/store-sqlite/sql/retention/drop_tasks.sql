-- retention/drop_tasks
DELETE FROM surefoot_task
WHERE run IN (SELECT id FROM surefoot_run WHERE no IN (SELECT value FROM json_each(?)))
