-- retention/drop_run_payloads
DELETE FROM run_payload WHERE run IN (SELECT value FROM json_each(?))
