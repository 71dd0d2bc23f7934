-- run/payload
SELECT data, context, actor FROM run_payload WHERE run = ?
