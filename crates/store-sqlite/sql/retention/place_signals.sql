-- retention/place_signals
DELETE FROM surefoot_signal WHERE no IN (
    SELECT no FROM surefoot_signal WHERE app = ?1 AND app_wide = 0 AND scope = ?2 LIMIT ?3
)
