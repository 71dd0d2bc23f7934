-- retention/count_deliveries
SELECT count(*) AS count FROM surefoot.delivery WHERE event = $1
