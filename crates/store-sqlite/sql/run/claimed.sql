-- run/claimed
SELECT run.* FROM surefoot_run AS run WHERE lease_owner = ?1 AND claim_nonce = ?2 ORDER BY no
