-- retention/mark
INSERT INTO surefoot.deletion (app, scope, workflow, forced, actor, reason, phase, cursor)
VALUES ($1, $2, $3, $4, $5, $6, 'cancel', NULL)
ON CONFLICT (app, scope, workflow) DO UPDATE SET
    forced = excluded.forced, actor = excluded.actor, reason = excluded.reason
