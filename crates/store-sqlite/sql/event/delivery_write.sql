-- event/delivery_write
INSERT INTO surefoot_delivery
    (event, position, run, workflow, version, footprint, trigger_kind, authorization)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
