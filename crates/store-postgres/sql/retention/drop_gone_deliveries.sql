-- retention/drop_gone_deliveries
DELETE FROM surefoot.delivery WHERE event = $1
    AND (SELECT true FROM surefoot.version WHERE version.id = delivery.version) IS NOT TRUE
RETURNING workflow
