-- version/by_id
SELECT version.id, version.revision, version.created_at, version.author,
    version.plan_hash, version.footprint, version.budget, version.plan, version.source,
    workflow.app, workflow.scope, workflow.key AS workflow,
    workflow.active IS NOT DISTINCT FROM version.id AS active
FROM surefoot.version JOIN surefoot.workflow ON workflow.no = version.workflow WHERE version.id = $1
