-- retention/drop_tasks
DELETE FROM surefoot.task WHERE run = ANY($1)
