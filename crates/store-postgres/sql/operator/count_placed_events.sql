-- operator/count_placed_events
SELECT count(*) AS count FROM (
    SELECT FROM surefoot.event WHERE app = $1 AND scope = $2 LIMIT $3
) AS placed
