-- event/dispatch_failed
UPDATE surefoot.event SET status = $2, attempts = $3, due_at = $4, ended_at = $5, error = $6 WHERE id = $1
