-- task/claim
UPDATE surefoot.task SET state = 'running', attempts = attempts + 1, failures = failures + 1, due_at = $1
WHERE (app, key) IN (SELECT app, key FROM surefoot.task WHERE app = $2 AND due_at <= $3 AND kind = $4
    ORDER BY due_at, key LIMIT $5 FOR UPDATE SKIP LOCKED)
RETURNING app, scope, run, step, kind, request, state, attempts, failures, output, code, message
