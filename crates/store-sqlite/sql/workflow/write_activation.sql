-- workflow/write_activation
INSERT INTO activation
    (workflow, key, position, app, scope, event, trigger_kind, authorization, enabled, present)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 1)
ON CONFLICT (workflow, key) DO UPDATE SET
    position = excluded.position, event = excluded.event, trigger_kind = excluded.trigger_kind,
    authorization = excluded.authorization, present = 1
