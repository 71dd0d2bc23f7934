-- retention/count_deliveries
SELECT count(*) AS count FROM delivery WHERE event = ?
