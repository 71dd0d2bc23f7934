-- audit/write
INSERT INTO surefoot.audit (at, app, scope, actor, verb, reason, run, version, details)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
