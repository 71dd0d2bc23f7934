-- operator/event
SELECT id, scope, kind, dedupe_key, status, matched, attempts, error, occurred_at, recorded_at, runs,
    tags, emptied_at IS NOT NULL AS is_expired
FROM surefoot_event WHERE id = ?
