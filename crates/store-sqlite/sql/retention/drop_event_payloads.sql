-- retention/drop_event_payloads
DELETE FROM surefoot_event_payload WHERE event IN (SELECT value FROM json_each(?))
