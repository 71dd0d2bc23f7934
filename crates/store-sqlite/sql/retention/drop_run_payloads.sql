-- retention/drop_run_payloads
DELETE FROM surefoot_run_payload WHERE run IN (SELECT value FROM json_each(?))
