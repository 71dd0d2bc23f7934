-- retention/events_unmatched
SELECT id FROM surefoot.event
WHERE app = $1 AND status = 'unmatched' AND emptied_at IS NULL AND recorded_at < $2
    AND ($3::text IS NULL OR scope = $3)
ORDER BY recorded_at, id LIMIT $4
