-- retention/drop_run_payloads
DELETE FROM surefoot.run_payload WHERE run = ANY($1)
