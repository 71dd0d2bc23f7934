-- event/payload_write
INSERT INTO event_payload (event, data, context, authorization, trace) VALUES (?, ?, ?, ?, ?)
