-- run/payload_write
WITH x (id, data, context, authorization, actor, trace) AS (VALUES /*rows*/)
INSERT INTO surefoot_run_payload (run, data, context, authorization, actor, trace)
SELECT run.no, x.data, x.context, x.authorization, x.actor, x.trace
FROM x CROSS JOIN surefoot_run AS run ON run.id = x.id
