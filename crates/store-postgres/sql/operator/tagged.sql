-- operator/tagged
-- By way of the events that have the tag, all of them: for one that few of the newest have. The app is asked in a way that
-- no index answers: that of the tags is the one to take, whatever the planner believes of an empty table.
SELECT run.*, version.revision AS version_revision
FROM surefoot.event CROSS JOIN LATERAL unnest(event.runs) AS tagged (id)
CROSS JOIN LATERAL (SELECT * FROM surefoot.run WHERE run.id = tagged.id OFFSET 0) AS run
JOIN surefoot.version ON version.id = run.version
WHERE event.tags @> $12::jsonb AND event.app IS NOT DISTINCT FROM $1
    AND ($2::text[] IS NULL OR run.state = ANY ($2))
    AND (run.created_at, run.id) < ($3, $4)
    AND ($11::boolean OR run.parent_run IS NULL)
    AND ($5::text IS NULL OR run.scope = $5)
    AND ($6::text IS NULL OR run.workflow = $6)
    AND ($7::text IS NULL OR run.mode = $7)
    AND ($8::bigint IS NULL OR run.created_at >= $8)
    AND ($9::uuid IS NULL OR run.event = $9)
ORDER BY run.created_at DESC, run.id DESC LIMIT $10
