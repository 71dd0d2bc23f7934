-- retention/drop_events
DELETE FROM surefoot.event WHERE id = ANY($1)
