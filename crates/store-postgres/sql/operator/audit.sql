-- operator/audit
SELECT scope, at, actor, verb, reason, run, version, details FROM surefoot.audit
WHERE app = $1 AND ($3::text IS NULL OR scope = $3) ORDER BY no DESC LIMIT $2
