-- event/payload_write
INSERT INTO surefoot_event_payload (event, data, context, authorization, trace) VALUES (?, ?, ?, ?, ?)
