-- retention/place_audit
UPDATE surefoot.audit SET details = '{}' WHERE no = ANY(ARRAY(
    SELECT no FROM surefoot.audit
    WHERE app = $1 AND scope = $2 AND run IS NOT NULL AND details <> '{}'
        AND ($3 = '' OR version IN (
            SELECT version.id
            FROM surefoot.workflow JOIN surefoot.version ON version.workflow = workflow.no
            WHERE workflow.app = $1 AND workflow.scope = $2 AND workflow.key = $3
        ))
    LIMIT $4
))
