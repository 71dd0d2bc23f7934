-- event/to_dispatch
SELECT event.id, event.app, event.scope, event.occurred_at,
    event_payload.data, event_payload.context, event_payload."authorization", event_payload.trace
FROM surefoot.event JOIN surefoot.event_payload ON event_payload.event = event.id
WHERE event.id = ANY($1)
