-- event/deliveries
SELECT run, workflow, version, footprint, trigger_kind, authorization,
    EXISTS (SELECT 1 FROM version WHERE version.id = delivery.version) AS is_there
FROM delivery
WHERE event = ? ORDER BY position
