-- operator/deleting
SELECT scope, workflow FROM surefoot.deletion WHERE app = $1 ORDER BY scope, workflow LIMIT 100
