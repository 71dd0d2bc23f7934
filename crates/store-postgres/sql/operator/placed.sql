-- operator/placed
-- By way of the versions: for a workflow, or a scope, that few runs belong to.
SELECT run.*, version.revision AS version_revision
FROM surefoot.workflow JOIN surefoot.version ON version.workflow = workflow.no
JOIN surefoot.run ON run.version = version.id
WHERE workflow.app = $1 AND ($5::text IS NULL OR workflow.scope = $5)
    AND ($6::text IS NULL OR workflow.key = $6)
    AND ($2::text[] IS NULL OR run.state = ANY ($2))
    AND (run.created_at, run.id) < ($3, $4)
    AND ($11::boolean OR run.parent_run IS NULL)
    AND ($7::text IS NULL OR run.mode = $7)
    AND ($8::bigint IS NULL OR run.created_at >= $8)
    AND ($9::uuid IS NULL OR run.event = $9)
ORDER BY run.created_at DESC, run.id DESC LIMIT $10
