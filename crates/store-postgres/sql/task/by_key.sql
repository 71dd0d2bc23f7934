-- task/by_key
SELECT app, scope, run, step, kind, request, state, attempts, failures, output, code, message FROM surefoot.task WHERE app = $1 AND key = $2
