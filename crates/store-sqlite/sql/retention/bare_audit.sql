-- retention/bare_audit
UPDATE audit SET details = '{}'
WHERE run IN (SELECT id FROM run WHERE no IN (SELECT value FROM json_each(?)))
