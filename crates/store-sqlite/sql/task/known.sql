-- task/known
-- The task that a step finds: none that is to be done afresh.
SELECT app, scope, run, step, kind, request, state, attempts, failures, output, code, message FROM surefoot_task
WHERE app = ? AND key = ? AND retried = 0
