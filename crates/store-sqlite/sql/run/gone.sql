-- run/gone
SELECT no FROM surefoot_run
WHERE app = ?1 AND claimable_at <= ?2 AND cancel IS NOT NULL AND lease_owner IS NOT NULL
ORDER BY claimable_at LIMIT ?3
