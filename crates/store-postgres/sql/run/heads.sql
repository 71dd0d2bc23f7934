-- run/heads
SELECT id, generation, revision, state, claimable_at, lease_until, lease_owner, lease_length, claim_nonce,
    cancel IS NOT NULL AS canceled, effect_state IS NOT NULL AS has_effect, signal, resume
FROM surefoot.run WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE
