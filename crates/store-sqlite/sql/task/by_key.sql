-- task/by_key
SELECT app, scope, run, step, kind, request, state, attempts, failures, output, code, message FROM surefoot_task WHERE app = ? AND key = ?
