-- operator/events_in_status
-- The status in the range tells the planner, who does not know which one is asked for, to take the index that begins with it.
SELECT id, scope, kind, dedupe_key, status, matched, attempts, error, occurred_at, recorded_at, runs,
    tags::text AS tags, emptied_at IS NOT NULL AS is_expired
FROM surefoot.event WHERE app = $1 AND status = $2 AND (status, recorded_at, id) < ($2, $3, $4)
    AND ($5::text IS NULL OR scope = $5) AND ($6::text IS NULL OR kind = $6)
ORDER BY recorded_at DESC, id DESC LIMIT $7
