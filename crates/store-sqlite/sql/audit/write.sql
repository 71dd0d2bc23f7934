-- audit/write
INSERT INTO audit (at, app, scope, actor, verb, reason, run, version, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
