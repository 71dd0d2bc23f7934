-- retention/drop_deliveries
DELETE FROM surefoot_delivery WHERE event IN (SELECT value FROM json_each(?))
