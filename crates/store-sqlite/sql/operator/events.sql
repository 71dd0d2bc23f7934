-- operator/events
-- Of one status, those that are whole.
SELECT id, scope, kind, dedupe_key, status, matched, attempts, error, occurred_at, recorded_at, runs,
    tags, emptied_at IS NOT NULL AS is_expired
FROM surefoot_event WHERE app = ?1 AND status = ?2 AND (recorded_at, id) < (?3, ?4)
    AND (?5 IS NULL OR scope = ?5) AND ?6 IS NULL AND emptied_at IS NULL
ORDER BY recorded_at DESC, id DESC LIMIT ?7
