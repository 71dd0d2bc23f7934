-- retention/drop_events
DELETE FROM event WHERE no IN (SELECT value FROM json_each(?))
