-- workflow/by_key
SELECT workflow.no, (SELECT revision FROM version WHERE version.no = workflow.active) AS active
FROM workflow WHERE app = ? AND scope = ? AND key = ?
