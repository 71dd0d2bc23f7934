-- operator/count_events
-- The range says nothing but which index to take: as in `events_in_status`.
SELECT count(*) AS count FROM surefoot.event
WHERE app = $1 AND status = $2 AND (status, recorded_at) >= ($2, 0) AND emptied_at IS NULL
