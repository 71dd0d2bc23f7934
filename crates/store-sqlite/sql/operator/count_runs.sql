-- operator/count_runs
SELECT count(*) AS count FROM surefoot_run WHERE app = ?1 AND state = ?2
