-- event/deliveries
SELECT delivery.event, delivery.run, delivery.workflow, delivery.version, delivery.footprint,
    delivery.trigger_kind, delivery."authorization",
    EXISTS (SELECT 1 FROM surefoot.version WHERE version.id = delivery.version) AS is_there
FROM surefoot.delivery
WHERE delivery.event = ANY($1) ORDER BY delivery.event, delivery.position
