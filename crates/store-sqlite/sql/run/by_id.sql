-- run/by_id
SELECT run.* FROM run WHERE id = ?
