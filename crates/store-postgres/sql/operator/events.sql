-- operator/events
-- Of each status a page, from the index that has it in order: one for those that are whole, one for those that were
-- emptied. The status in the range tells the planner to take them, whatever it believes of an empty table.
SELECT event.* FROM unnest($2::text[]) AS wanted (status) CROSS JOIN LATERAL (
    (SELECT id, scope, kind, dedupe_key, status, matched, attempts, error, occurred_at, recorded_at, runs,
        tags::text AS tags, emptied_at IS NOT NULL AS is_expired
    FROM surefoot.event WHERE app = $1 AND $6::text IS NULL AND event.status = wanted.status
        AND (event.status, recorded_at, id) < (wanted.status, $3, $4)
        AND ($5::text IS NULL OR scope = $5) AND emptied_at IS NULL
    ORDER BY recorded_at DESC, id DESC LIMIT $7)
    UNION ALL
    (SELECT id, scope, kind, dedupe_key, status, matched, attempts, error, occurred_at, recorded_at, runs,
        tags::text AS tags, emptied_at IS NOT NULL AS is_expired
    FROM surefoot.event WHERE app = $1 AND $6::text IS NULL AND event.status = wanted.status
        AND (event.status, recorded_at, id) < (wanted.status, $3, $4)
        AND ($5::text IS NULL OR scope = $5) AND emptied_at IS NOT NULL
    ORDER BY recorded_at DESC, id DESC LIMIT $7)
) AS event ORDER BY recorded_at DESC, id DESC LIMIT $7
