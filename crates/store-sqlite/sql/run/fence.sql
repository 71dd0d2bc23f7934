-- run/fence
UPDATE surefoot_run SET claim_nonce = claim_nonce
WHERE id = ?1 AND generation = ?2 AND state = 'running' AND cancel IS NULL
