-- retention/drop_events
DELETE FROM surefoot_event WHERE no IN (SELECT value FROM json_each(?))
