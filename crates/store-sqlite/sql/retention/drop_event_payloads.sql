-- retention/drop_event_payloads
DELETE FROM event_payload WHERE event IN (SELECT value FROM json_each(?))
