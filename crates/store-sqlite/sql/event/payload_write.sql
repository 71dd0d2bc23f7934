-- event/payload_write
WITH x (id, data, context, authorization, trace) AS (VALUES /*rows*/)
INSERT INTO surefoot_event_payload (event, data, context, authorization, trace)
SELECT event.no, x.data, x.context, x.authorization, x.trace
FROM x CROSS JOIN surefoot_event AS event ON event.id = x.id
