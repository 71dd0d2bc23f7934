-- retention/prune_audit
DELETE FROM surefoot_audit WHERE no IN (
    SELECT no FROM surefoot_audit WHERE app = ?1 AND at < ?2 AND (?3 IS NULL OR scope = ?3)
    ORDER BY no LIMIT ?4
)
