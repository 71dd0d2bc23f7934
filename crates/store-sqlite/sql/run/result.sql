-- run/result
SELECT result FROM surefoot_run_result WHERE run = ?
