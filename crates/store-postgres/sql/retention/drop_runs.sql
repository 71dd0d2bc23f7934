-- retention/drop_runs
DELETE FROM surefoot.run WHERE id = ANY($1)
