-- retention/drop_gone_deliveries
DELETE FROM surefoot_delivery AS delivery
WHERE event = ?1 AND NOT EXISTS (SELECT 1 FROM surefoot_version AS version WHERE version.id = delivery.version)
RETURNING workflow
