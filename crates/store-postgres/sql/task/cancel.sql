-- task/cancel
UPDATE surefoot.task SET state = 'canceled', due_at = NULL, ended_at = $1
WHERE app = $2 AND key = ANY($3) AND due_at IS NOT NULL
