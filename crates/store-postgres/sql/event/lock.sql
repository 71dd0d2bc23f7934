-- event/lock
SELECT id, status, runs FROM surefoot.event WHERE id = $1 FOR NO KEY UPDATE
