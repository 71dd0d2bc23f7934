-- retention/prune_audit
DELETE FROM surefoot.audit WHERE no = ANY(ARRAY(
    SELECT no FROM surefoot.audit WHERE app = $1 AND at < $2 AND ($3::text IS NULL OR scope = $3)
    ORDER BY at LIMIT $4
))
