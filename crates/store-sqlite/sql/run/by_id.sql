-- run/by_id
SELECT run.* FROM surefoot_run AS run WHERE id = ?
