-- retention/drop_results
DELETE FROM surefoot.run_result WHERE run = ANY($1)
