-- task/open
INSERT INTO surefoot.task (app, key, scope, run, step, kind, request, state, attempts, failures, due_at, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'queued', 0, 0, $8, $8)
ON CONFLICT DO NOTHING
