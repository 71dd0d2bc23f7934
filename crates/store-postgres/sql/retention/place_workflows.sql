-- retention/place_workflows
DELETE FROM surefoot.workflow WHERE app = $1 AND scope = $2 AND ($3 = '' OR key = $3)
