-- retention/prune_signals
DELETE FROM surefoot_signal WHERE no IN (
    SELECT no FROM surefoot_signal
    WHERE app = ?1 AND spent_at < ?2 AND more = 0 AND (?3 IS NULL OR (app_wide = 0 AND scope = ?3))
    ORDER BY spent_at LIMIT ?4
)
