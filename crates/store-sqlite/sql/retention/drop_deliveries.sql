-- retention/drop_deliveries
DELETE FROM delivery WHERE event IN (SELECT value FROM json_each(?))
