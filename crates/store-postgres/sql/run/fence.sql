-- run/fence
SELECT FROM surefoot.run
WHERE id = $1 AND generation = $2 AND state = 'running' AND cancel IS NULL FOR NO KEY UPDATE
