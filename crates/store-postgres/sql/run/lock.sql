-- run/lock
-- By id alone: what is returned is the row as it is once the lock was got, whatever it was before.
SELECT run.* FROM surefoot.run WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE
