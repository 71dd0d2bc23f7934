-- retention/drop_gone_deliveries
DELETE FROM surefoot.delivery WHERE event = $1
    AND NOT EXISTS (SELECT 1 FROM surefoot.version WHERE version.id = delivery.version)
RETURNING workflow
