-- version/by_id
SELECT version.no, version.id, version.revision, version.created_at, version.author,
    version.plan_hash, version.footprint, version.budget, version.plan, version.source,
    workflow.app, workflow.scope, workflow.key AS workflow,
    workflow.active IS version.no AS active
FROM surefoot_version AS version JOIN surefoot_workflow AS workflow ON workflow.no = version.workflow WHERE version.id = ?
