-- task/due
SELECT 1 FROM surefoot_task WHERE app = ? AND due_at <= ? AND kind = ? LIMIT 1
