-- operator/signals
SELECT app_wide, scope, kind, key, data, recorded_at FROM surefoot.signal
WHERE app = $1 AND spent_at IS NULL AND ($3::text IS NULL OR (NOT app_wide AND scope = $3))
ORDER BY no LIMIT $2
