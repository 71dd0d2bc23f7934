-- run/result_write
INSERT INTO surefoot_run_result (run, result) SELECT * FROM (VALUES /*rows*/) WHERE column1 IS NOT NULL
