-- run/payload_write
INSERT INTO surefoot_run_payload (run, data, context, authorization, actor, trace) VALUES /*rows*/
