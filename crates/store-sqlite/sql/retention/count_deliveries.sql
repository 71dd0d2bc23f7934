-- retention/count_deliveries
SELECT count(*) AS count FROM surefoot_delivery WHERE event = ?
