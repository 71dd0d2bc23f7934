-- operator/count_ended
SELECT count(*) AS count FROM surefoot.run WHERE app = $1 AND state = $2 AND ended_at IS NOT NULL
