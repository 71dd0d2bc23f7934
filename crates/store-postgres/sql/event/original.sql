-- event/original
-- The event that was recorded under this id, or this key, before.
SELECT id, matched, payload_hash, status, runs, tags::text AS tags FROM surefoot.event WHERE id = $1
UNION ALL
SELECT id, matched, payload_hash, status, runs, tags::text AS tags FROM surefoot.event
WHERE app = $2 AND scope = $3 AND kind = $4 AND dedupe_key = $5
LIMIT 1
