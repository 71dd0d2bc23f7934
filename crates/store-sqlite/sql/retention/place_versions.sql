-- retention/place_versions
DELETE FROM surefoot_version AS version WHERE no IN (
    SELECT version.no FROM surefoot_workflow AS workflow JOIN surefoot_version AS version ON version.workflow = workflow.no
    WHERE workflow.app = ?1 AND workflow.scope = ?2 AND (?3 = '' OR workflow.key = ?3) LIMIT ?4
)
