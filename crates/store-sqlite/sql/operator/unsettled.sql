-- operator/unsettled
SELECT count(*) AS count, min(effect_since) AS oldest FROM run INDEXED BY run_effect
WHERE app = ?1 AND effect_state IN ('marked', 'ambiguous')
