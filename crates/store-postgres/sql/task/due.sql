-- task/due
SELECT 1 FROM surefoot.task WHERE app = $1 AND due_at <= $2 AND kind = $3 LIMIT 1
