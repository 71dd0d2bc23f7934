-- event/due
SELECT id FROM surefoot.event WHERE app = $1 AND due_at <= (SELECT surefoot.clock() + $2) ORDER BY due_at LIMIT 1
