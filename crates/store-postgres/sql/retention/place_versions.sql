-- retention/place_versions
DELETE FROM surefoot.version WHERE id = ANY(ARRAY(
    SELECT version.id FROM surefoot.workflow JOIN surefoot.version ON version.workflow = workflow.no
    WHERE workflow.app = $1 AND workflow.scope = $2 AND ($3 = '' OR workflow.key = $3) LIMIT $4
))
