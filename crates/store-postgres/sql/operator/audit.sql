-- operator/audit
-- The range is all there is; it tells the planner which index has these rows in order.
SELECT scope, at, actor, verb, reason, run, version, details FROM surefoot.audit
WHERE app = $1 AND no > 0 AND ($3::text IS NULL OR scope = $3) IS TRUE ORDER BY no DESC LIMIT $2
