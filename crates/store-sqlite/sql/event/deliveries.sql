-- event/deliveries
SELECT run, workflow, version, footprint, trigger_kind, authorization,
    EXISTS (SELECT 1 FROM surefoot_version AS version WHERE version.id = delivery.version) AS is_there
FROM surefoot_delivery AS delivery
WHERE event = ? ORDER BY position
