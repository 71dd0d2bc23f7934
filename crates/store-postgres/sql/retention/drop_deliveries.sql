-- retention/drop_deliveries
DELETE FROM surefoot.delivery WHERE event = ANY($1)
