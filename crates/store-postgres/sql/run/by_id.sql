-- run/by_id
SELECT run.* FROM surefoot.run WHERE id = $1
