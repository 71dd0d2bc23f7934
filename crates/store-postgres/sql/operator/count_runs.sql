-- operator/count_runs
SELECT count(*) AS count FROM surefoot.run WHERE app = $1 AND state = $2
