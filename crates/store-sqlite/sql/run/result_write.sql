-- run/result_write
INSERT INTO run_result (run, result) VALUES (?, ?)
