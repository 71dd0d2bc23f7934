-- retention/lock_events
-- Its own index is for lists; these go by the key.
SELECT id FROM surefoot.event WHERE id = ANY($1) AND (emptied_at IS NULL) IS TRUE
ORDER BY id FOR UPDATE SKIP LOCKED
