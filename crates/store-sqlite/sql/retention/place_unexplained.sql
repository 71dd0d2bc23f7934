-- retention/place_unexplained
SELECT run.id, run.effect_step, run.effect_state
FROM surefoot_run AS run JOIN surefoot_run AS root ON root.id = run.root
WHERE run.app = ?1 AND run.effect_state IS NOT NULL AND run.scope = ?2
    AND (?3 = '' OR root.workflow = ?3)
    AND run.state || ' ' || run.effect_state IN (SELECT value FROM json_each(?4))
ORDER BY run.effect_since LIMIT ?5
