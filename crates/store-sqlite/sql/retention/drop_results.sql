-- retention/drop_results
DELETE FROM run_result WHERE run IN (SELECT value FROM json_each(?))
