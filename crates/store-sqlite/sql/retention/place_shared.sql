-- retention/place_shared
SELECT DISTINCT run.root
FROM surefoot_workflow AS workflow
JOIN surefoot_version AS version ON version.workflow = workflow.no
JOIN surefoot_run AS run ON run.version = version.id
JOIN surefoot_run AS root ON root.id = run.root
WHERE workflow.app = ?1 AND workflow.scope = ?2 AND workflow.key = ?3
    AND run.parent_run IS NOT NULL AND root.workflow <> ?3
LIMIT ?4
