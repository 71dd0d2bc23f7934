-- retention/place_signals
DELETE FROM surefoot.signal WHERE no = ANY(ARRAY(
    SELECT no FROM surefoot.signal WHERE app = $1 AND NOT app_wide AND scope = $2 LIMIT $3
))
