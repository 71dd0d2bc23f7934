-- operator/event
SELECT id, scope, kind, dedupe_key, status, matched, attempts, error, occurred_at, recorded_at, runs
FROM event WHERE id = ?
