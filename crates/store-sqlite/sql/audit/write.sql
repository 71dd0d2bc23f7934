-- audit/write
INSERT INTO surefoot_audit (at, app, scope, actor, verb, reason, run, version, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
