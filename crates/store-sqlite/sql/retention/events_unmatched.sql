-- retention/events_unmatched
SELECT no FROM surefoot_event
WHERE app = ?1 AND status = 'unmatched' AND emptied_at IS NULL AND recorded_at < ?2
    AND (?3 IS NULL OR scope = ?3)
ORDER BY recorded_at, no LIMIT ?4
