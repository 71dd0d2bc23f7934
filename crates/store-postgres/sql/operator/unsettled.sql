-- operator/unsettled
SELECT count(*) AS count, min(effect_since) AS oldest FROM surefoot.run
WHERE app = $1 AND effect_state IS NOT NULL AND effect_state IN ('marked', 'ambiguous')
