-- run/result
SELECT result FROM surefoot.run_result WHERE run = $1
