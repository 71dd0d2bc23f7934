-- retention/drop_gone_deliveries
DELETE FROM delivery
WHERE event = ?1 AND NOT EXISTS (SELECT 1 FROM version WHERE version.id = delivery.version)
RETURNING workflow
