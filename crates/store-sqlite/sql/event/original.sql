-- event/original
SELECT no, id, matched, payload_hash, status, runs FROM surefoot_event WHERE id = ?1
UNION ALL
SELECT no, id, matched, payload_hash, status, runs FROM surefoot_event
WHERE app = ?2 AND scope = ?3 AND kind = ?4 AND dedupe_key = ?5
LIMIT 1
