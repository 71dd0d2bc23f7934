-- run/claimed
SELECT run.* FROM run WHERE lease_owner = ?1 AND claim_nonce = ?2 ORDER BY no
