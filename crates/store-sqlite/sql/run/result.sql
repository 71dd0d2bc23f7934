-- run/result
SELECT result FROM run_result WHERE run = ?
