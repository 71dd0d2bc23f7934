-- operator/count_events
SELECT count(*) AS count FROM surefoot.event WHERE app = $1 AND status = $2 AND emptied_at IS NULL
