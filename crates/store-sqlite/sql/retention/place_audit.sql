-- retention/place_audit
UPDATE surefoot_audit SET details = '{}' WHERE no IN (
    SELECT no FROM surefoot_audit
    WHERE app = ?1 AND scope = ?2 AND run IS NOT NULL AND details <> '{}' AND (?3 = '' OR version IN (
        SELECT version.id FROM surefoot_workflow AS workflow JOIN surefoot_version AS version ON version.workflow = workflow.no
        WHERE workflow.app = ?1 AND workflow.scope = ?2 AND workflow.key = ?3
    ))
    LIMIT ?4
)
