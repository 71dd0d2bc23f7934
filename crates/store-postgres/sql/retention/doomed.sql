-- retention/doomed
SELECT doomed.root
FROM surefoot.doomed AS doomed JOIN surefoot.run AS run ON run.id = doomed.root
WHERE doomed.app = $1 AND ($2::text IS NULL OR run.scope = $2) LIMIT $3
