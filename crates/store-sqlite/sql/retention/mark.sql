-- retention/mark
INSERT INTO deletion (app, scope, workflow, forced, actor, reason, phase, cursor)
VALUES (?, ?, ?, ?, ?, ?, 'cancel', 0)
ON CONFLICT (app, scope, workflow) DO UPDATE SET
    forced = excluded.forced, actor = excluded.actor, reason = excluded.reason
