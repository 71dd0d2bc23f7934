-- task/keep
UPDATE surefoot.task SET due_at = $1
WHERE app = $2 AND key = $3 AND attempts = $4 AND state = 'running'
