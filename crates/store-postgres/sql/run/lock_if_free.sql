-- run/lock_if_free
SELECT run.* FROM surefoot.run WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
