-- child/version
SELECT version.id AS version, version.footprint_hash AS footprint
FROM surefoot.workflow JOIN surefoot.version ON version.id = workflow.active
WHERE workflow.app = $1 AND workflow.scope = $2 AND workflow.key = $3
