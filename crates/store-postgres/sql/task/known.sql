-- task/known
-- The task that a step finds: none that is to be done afresh.
SELECT app, scope, run, step, kind, request, state, attempts, failures, output, code, message FROM surefoot.task
WHERE app = $1 AND key = $2 AND NOT retried
