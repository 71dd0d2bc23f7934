-- child/version
SELECT version.id AS version, version.footprint_hash AS footprint
FROM surefoot_workflow AS workflow JOIN surefoot_version AS version ON version.no = workflow.active
WHERE workflow.app = ?1 AND workflow.scope = ?2 AND workflow.key = ?3
