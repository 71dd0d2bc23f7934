-- event/delivery_write
INSERT INTO delivery
    (event, position, run, workflow, version, footprint, trigger_kind, authorization)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
