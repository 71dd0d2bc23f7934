-- operator/signals
SELECT app_wide, scope, kind, key, data, recorded_at FROM surefoot_signal
WHERE app = ?1 AND spent_at IS NULL AND (?3 IS NULL OR (app_wide = 0 AND scope = ?3))
ORDER BY no LIMIT ?2
