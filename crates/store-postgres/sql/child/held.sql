-- child/held
-- The first children that are held back, and that nobody has locked.
SELECT run.* FROM surefoot.run
WHERE parent_run = $1 AND parent_step = $2 AND claimable_at = 9223372036854775807
ORDER BY parent_index LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
