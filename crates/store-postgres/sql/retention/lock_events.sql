-- retention/lock_events
SELECT id FROM surefoot.event WHERE id = ANY($1) AND emptied_at IS NULL
ORDER BY id FOR UPDATE SKIP LOCKED
