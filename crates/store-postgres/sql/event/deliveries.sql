-- event/deliveries
SELECT delivery.event, delivery.run, delivery.workflow, delivery.version, delivery.footprint,
    delivery.trigger_kind, delivery."authorization",
    (SELECT true FROM surefoot.version WHERE version.id = delivery.version) IS TRUE AS is_there
FROM surefoot.delivery
WHERE delivery.event = ANY($1) ORDER BY delivery.event, delivery.position
