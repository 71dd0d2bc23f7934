-- event/to_dispatch
SELECT event.id, event.app, event.scope, event.occurred_at,
    event_payload.data, event_payload.context, event_payload.authorization,
    event_payload.trace
FROM event JOIN event_payload ON event_payload.event = event.no WHERE event.no = ?
