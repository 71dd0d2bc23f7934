-- retention/redrive
UPDATE surefoot.event SET status = $2, attempts = 0, error = NULL, due_at = $3, ended_at = $4 WHERE id = $1
