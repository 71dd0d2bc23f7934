-- retention/place_left
SELECT DISTINCT run.root
FROM surefoot_workflow AS workflow
JOIN surefoot_version AS version ON version.workflow = workflow.no
JOIN surefoot_run AS run ON run.version = version.id
WHERE workflow.app = ?1 AND workflow.scope = ?2 AND (?3 = '' OR workflow.key = ?3)
LIMIT ?4
