-- version/list
SELECT version.id, version.revision, version.created_at, version.author,
    version.plan_hash, version.footprint, version.budget, '' AS plan, '' AS source,
    workflow.app, workflow.scope, workflow.key AS workflow,
    workflow.active IS NOT DISTINCT FROM version.id AS active
FROM surefoot.version JOIN surefoot.workflow ON workflow.no = version.workflow
WHERE workflow.app = $1 AND workflow.scope = $2 AND workflow.key = $3
ORDER BY version.revision DESC
