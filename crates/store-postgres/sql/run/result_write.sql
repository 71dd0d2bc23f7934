-- run/result_write
INSERT INTO surefoot.run_result (run, result) SELECT * FROM unnest($1::uuid[], $2::text[])
