-- retention/place_doomed
SELECT root.id
FROM surefoot.doomed JOIN surefoot.run AS root ON root.id = doomed.root
WHERE doomed.app = $1 AND root.scope = $2 AND ($3 = '' OR root.workflow = $3)
LIMIT $4
