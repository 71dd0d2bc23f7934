-- operator/due
SELECT footprint, count(*) AS count, min(claimable_at) AS oldest FROM surefoot.run
WHERE app = $1 AND mode = $3 AND claimable_at <= $2 GROUP BY footprint ORDER BY footprint COLLATE "C"
