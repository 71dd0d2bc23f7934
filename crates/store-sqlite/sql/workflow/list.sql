-- workflow/list
SELECT workflow.no, workflow.scope, workflow.key,
    (SELECT revision FROM surefoot_version AS version WHERE version.no = workflow.active) AS active,
    (SELECT max(revision) FROM surefoot_version AS version WHERE version.workflow = workflow.no) AS latest
FROM surefoot_workflow AS workflow WHERE app = ?1 AND (?2 IS NULL OR scope = ?2) ORDER BY scope, key
