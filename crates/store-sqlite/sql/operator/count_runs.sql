-- operator/count_runs
SELECT count(*) AS count FROM run WHERE app = ?1 AND state = ?2
