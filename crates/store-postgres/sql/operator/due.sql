-- operator/due
-- A run that was renewed is due at the end of its lease, which the index need not know yet.
SELECT footprint, count(*) AS count, min(greatest(claimable_at, lease_until)) AS oldest FROM surefoot.run
WHERE app = $1 AND mode = $3 AND claimable_at <= $2 AND (lease_until IS NULL OR lease_until <= $2)
GROUP BY footprint ORDER BY footprint COLLATE "C"
