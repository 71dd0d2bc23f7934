-- workflow/write_activation
INSERT INTO surefoot_activation AS activation
    (workflow, key, position, app, scope, event, trigger_kind, authorization, enabled, present, schedule, since)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 1, ?, ?)
ON CONFLICT (workflow, key) DO UPDATE SET
    position = excluded.position, event = excluded.event, trigger_kind = excluded.trigger_kind,
    authorization = excluded.authorization, present = 1, schedule = excluded.schedule,
    since = CASE WHEN activation.schedule IS excluded.schedule THEN activation.since ELSE excluded.since END
