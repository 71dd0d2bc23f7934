-- retention/place_left
SELECT run.root
FROM surefoot.workflow
JOIN surefoot.version ON version.workflow = workflow.no
JOIN surefoot.run ON run.version = version.id
WHERE workflow.app = $1 AND workflow.scope = $2 AND ($3 = '' OR workflow.key = $3)
LIMIT $4
