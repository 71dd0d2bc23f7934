-- retention/mark
INSERT INTO surefoot_deletion (app, scope, workflow, forced, actor, reason, phase, cursor)
VALUES (?, ?, ?, ?, ?, ?, 'cancel', 0)
ON CONFLICT (app, scope, workflow) DO UPDATE SET
    forced = excluded.forced, actor = excluded.actor, reason = excluded.reason
