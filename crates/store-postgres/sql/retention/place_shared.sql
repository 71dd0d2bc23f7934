-- retention/place_shared
SELECT DISTINCT run.root
FROM surefoot.workflow
JOIN surefoot.version ON version.workflow = workflow.no
JOIN surefoot.run ON run.version = version.id
JOIN surefoot.run AS root ON root.id = run.root
WHERE workflow.app = $1 AND workflow.scope = $2 AND workflow.key = $3
    AND run.parent_run IS NOT NULL AND root.workflow <> $3
LIMIT $4
