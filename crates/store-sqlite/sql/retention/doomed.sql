-- retention/doomed
SELECT doomed.root
FROM surefoot_doomed AS doomed JOIN surefoot_run AS run ON run.id = doomed.root
WHERE doomed.app = ?1 AND (?2 IS NULL OR run.scope = ?2) LIMIT ?3
