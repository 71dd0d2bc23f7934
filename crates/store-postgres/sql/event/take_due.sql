-- event/take_due
-- What another process dispatches at this moment is passed over.
SELECT id, attempts FROM surefoot.event WHERE app = $1 AND due_at <= $2
ORDER BY due_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
