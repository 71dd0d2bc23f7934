-- child/read
SELECT run.* FROM surefoot.run
WHERE parent_run = $1 AND parent_step = $2 AND parent_index >= $3
ORDER BY parent_index LIMIT $4
