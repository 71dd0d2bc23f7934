-- operator/children
SELECT run.*, version.revision AS version_revision
FROM surefoot.run JOIN surefoot.version ON version.id = run.version
WHERE run.parent_run = $1 AND ($2::text IS NULL OR run.app = $2)
    AND (run.created_at, run.id) < ($3, $4)
    AND ($5::text IS NULL OR run.scope = $5)
    AND ($6::text IS NULL OR run.workflow = $6)
    AND ($7::text IS NULL OR run.mode = $7)
    AND ($8::bigint IS NULL OR run.created_at >= $8)
    AND ($9::uuid IS NULL OR run.event = $9)
    AND ($11::text[] IS NULL OR run.state = ANY ($11))
    AND ($12::jsonb IS NULL
        OR (SELECT tags FROM surefoot.event WHERE event.id = run.event) @> $12::jsonb)
ORDER BY run.created_at DESC, run.id DESC LIMIT $10
