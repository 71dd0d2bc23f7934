-- operator/signals
SELECT app_wide, scope, kind, key, data, recorded_at FROM surefoot.signal
WHERE app = $1 AND spent_at IS NULL ORDER BY no LIMIT $2
