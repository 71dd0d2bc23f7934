-- retention/drop_results
DELETE FROM surefoot_run_result WHERE run IN (SELECT value FROM json_each(?))
