-- event/original
-- What is being deleted where the event belongs, and the event that was recorded before, if any: one row in any case.
SELECT original.*, (
    SELECT workflow FROM surefoot_deletion
    WHERE app = ?2 AND scope = ?3 AND workflow IN ('', ?6) LIMIT 1
) AS deleting
FROM (VALUES (1)) LEFT JOIN (
    SELECT no, id, matched, payload_hash, status, runs, tags FROM surefoot_event WHERE id = ?1
    UNION ALL
    SELECT no, id, matched, payload_hash, status, runs, tags FROM surefoot_event
    WHERE app = ?2 AND scope = ?3 AND kind = ?4 AND dedupe_key = ?5
    LIMIT 1
) AS original ON true
