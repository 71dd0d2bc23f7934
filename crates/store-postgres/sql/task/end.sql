-- task/end
UPDATE surefoot.task SET state = $1, due_at = NULL, output = $2, code = $3, message = $4, ended_at = $5
WHERE app = $6 AND key = $7 AND attempts = $8 AND state = 'running'
