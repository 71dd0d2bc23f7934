-- retention/place_events
SELECT no FROM surefoot_event NOT INDEXED
WHERE no > ?4 AND app = ?1 AND scope = ?2 AND (?3 = '' OR target = ?3)
ORDER BY no LIMIT ?5
