-- retention/bare_audit
UPDATE surefoot.audit SET details = '{}' WHERE run = ANY($1)
