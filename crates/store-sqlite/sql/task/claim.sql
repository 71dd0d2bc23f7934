-- task/claim
UPDATE surefoot_task SET state = 'running', attempts = attempts + 1, failures = failures + 1, due_at = ?1
WHERE no IN (SELECT no FROM surefoot_task WHERE app = ?2 AND due_at <= ?3 AND kind = ?4 ORDER BY due_at, no LIMIT ?5)
RETURNING app, scope, run, step, kind, request, state, attempts, failures, output, code, message
