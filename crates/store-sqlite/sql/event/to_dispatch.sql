-- event/to_dispatch
SELECT event.id, event.app, event.scope, event.occurred_at,
    event_payload.data, event_payload.context, event_payload.authorization,
    event_payload.trace
FROM surefoot_event AS event JOIN surefoot_event_payload AS event_payload ON event_payload.event = event.no WHERE event.no = ?
