-- run/payload_write
INSERT INTO run_payload (run, data, context, authorization, actor, trace) VALUES /*rows*/
