-- retention/events_old
SELECT id, runs, recorded_at FROM surefoot.event
WHERE app = $1 AND status = $2 AND emptied_at IS NULL AND recorded_at <= $3 AND ended_at <= $3
    AND (recorded_at, id) > ($4, $5)
ORDER BY recorded_at, id LIMIT $6
