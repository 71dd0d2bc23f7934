-- retention/place_unexplained
SELECT run.id, run.effect_step, run.effect_state
FROM surefoot.run JOIN surefoot.run AS root ON root.id = run.root
WHERE run.app = $1 AND run.effectful AND run.effect_state IS NOT NULL AND run.scope = $2
    AND ($3 = '' OR root.workflow = $3)
    AND run.state || ' ' || run.effect_state = ANY($4)
ORDER BY run.effect_since LIMIT $5
