-- retention/bare_audit
UPDATE surefoot_audit SET details = '{}'
WHERE run IN (SELECT id FROM surefoot_run WHERE no IN (SELECT value FROM json_each(?)))
