-- operator/events_placed
-- All of a scope, which has few. By its own index, whatever the planner believes of the other conditions.
SELECT id, scope, kind, dedupe_key, status, matched, attempts, error, occurred_at, recorded_at, runs,
    tags::text AS tags, emptied_at IS NOT NULL AS is_expired
FROM (SELECT * FROM surefoot.event WHERE app = $1 AND scope = $5 OFFSET 0) AS event
WHERE status = ANY ($2::text[]) AND (recorded_at, id) < ($3, $4) AND ($6::text IS NULL OR kind = $6)
ORDER BY recorded_at DESC, id DESC LIMIT $7
