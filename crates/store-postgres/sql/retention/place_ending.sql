-- retention/place_ending
SELECT count(*) AS count FROM surefoot.run JOIN surefoot.run AS root ON root.id = run.root
WHERE run.app = $1 AND run.ended_at IS NULL AND run.scope = $2 AND ($3 = '' OR root.workflow = $3)
    AND run.state || ' ' || coalesce(run.effect_state, '-') <> ALL($4)
