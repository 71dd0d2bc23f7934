-- event/delivery_write
INSERT INTO surefoot_delivery
    (event, position, run, workflow, version, footprint, trigger_kind, authorization)
SELECT no, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM surefoot_event WHERE id = ?1
