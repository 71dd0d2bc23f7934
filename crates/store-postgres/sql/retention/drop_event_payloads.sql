-- retention/drop_event_payloads
DELETE FROM surefoot.event_payload WHERE event = ANY($1)
