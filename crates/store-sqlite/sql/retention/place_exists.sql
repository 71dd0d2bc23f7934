-- retention/place_exists
SELECT EXISTS (SELECT 1 FROM surefoot_workflow WHERE app = ?1 AND scope = ?2 AND (?3 = '' OR key = ?3))
    OR (?3 = '' AND EXISTS (SELECT 1 FROM surefoot_event WHERE app = ?1 AND scope = ?2))
    OR (?3 = '' AND EXISTS (SELECT 1 FROM surefoot_signal WHERE app = ?1 AND app_wide = 0 AND scope = ?2))
    AS is_there
