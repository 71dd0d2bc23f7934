-- retention/deleting
SELECT workflow FROM surefoot.deletion WHERE app = $1 AND scope = $2 AND workflow IN ('', $3) LIMIT 1
