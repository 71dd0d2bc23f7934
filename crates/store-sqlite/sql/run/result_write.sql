-- run/result_write
INSERT INTO surefoot_run_result (run, result) VALUES (?, ?)
