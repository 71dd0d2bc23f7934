-- workflow/list
SELECT workflow.no, workflow.scope, workflow.key,
    (SELECT revision FROM surefoot.version WHERE version.id = workflow.active) AS active,
    (SELECT max(revision) FROM surefoot.version WHERE version.workflow = workflow.no) AS latest
FROM surefoot.workflow WHERE app = $1 AND ($2::text IS NULL OR scope = $2)
ORDER BY scope COLLATE "C", key COLLATE "C"
