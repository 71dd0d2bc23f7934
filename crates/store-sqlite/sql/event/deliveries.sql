-- event/deliveries
SELECT run, workflow, version, footprint, trigger_kind, authorization FROM delivery
WHERE event = ? ORDER BY position
