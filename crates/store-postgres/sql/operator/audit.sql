-- operator/audit
SELECT scope, at, actor, verb, reason, run, version, details FROM surefoot.audit
WHERE app = $1 ORDER BY no DESC LIMIT $2
