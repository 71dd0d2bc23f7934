-- run/gone
SELECT id FROM surefoot.run
WHERE app = $1 AND claimable_at <= $2 AND cancel IS NOT NULL AND lease_owner IS NOT NULL AND lease_until <= $2
ORDER BY claimable_at LIMIT $3
