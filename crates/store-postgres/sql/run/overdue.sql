-- run/overdue
SELECT id FROM surefoot.run WHERE app = $1 AND wake_at <= $2 ORDER BY wake_at LIMIT $3
