-- retention/lock_events
-- Its own index is for lists; these go by the key.
-- What was found earlier may have been redriven since: then it is not done with any more.
SELECT id FROM surefoot.event WHERE id = ANY($1) AND (emptied_at IS NULL) IS TRUE
    AND (due_at IS NULL AND coalesce(ended_at, recorded_at) <= $2) IS TRUE
ORDER BY id FOR UPDATE SKIP LOCKED
