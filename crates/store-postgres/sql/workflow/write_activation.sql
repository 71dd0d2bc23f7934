-- workflow/write_activation
INSERT INTO surefoot.activation
    (workflow, key, position, app, scope, event, trigger_kind, "authorization", enabled, present, schedule, since)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, true, true, $9, $10)
ON CONFLICT (workflow, key) DO UPDATE SET
    position = excluded.position, event = excluded.event, trigger_kind = excluded.trigger_kind,
    "authorization" = excluded."authorization", present = true, schedule = excluded.schedule,
    since = CASE WHEN activation.schedule IS NOT DISTINCT FROM excluded.schedule
        THEN activation.since ELSE excluded.since END
