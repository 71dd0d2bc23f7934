-- retention/place_uncanceled
SELECT run.id FROM surefoot.run JOIN surefoot.run AS root ON root.id = run.root
WHERE run.app = $1 AND run.ended_at IS NULL AND run.cancel IS NULL AND run.scope = $2
    AND ($3 = '' OR root.workflow = $3)
LIMIT $4
