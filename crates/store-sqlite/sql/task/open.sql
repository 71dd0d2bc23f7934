-- task/open
INSERT INTO surefoot_task (
    app, key, scope, run, step, kind, request, state, attempts, failures, due_at, created_at, retried
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'queued', 0, 0, ?8, ?8, 0)
ON CONFLICT (app, key) DO UPDATE SET
    kind = excluded.kind, state = 'queued', failures = 0, due_at = excluded.due_at, code = NULL, message = NULL,
    ended_at = NULL, retried = 0
WHERE surefoot_task.retried = 1
