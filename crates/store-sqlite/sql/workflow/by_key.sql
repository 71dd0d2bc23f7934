-- workflow/by_key
SELECT workflow.no, (SELECT revision FROM surefoot_version AS version WHERE version.no = workflow.active) AS active
FROM surefoot_workflow AS workflow WHERE app = ? AND scope = ? AND key = ?
