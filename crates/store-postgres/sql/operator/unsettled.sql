-- operator/unsettled
SELECT state, effect_state, count(*) AS count, min(effect_since) AS oldest FROM surefoot.run
WHERE app = $1 AND effectful AND effect_state IS NOT NULL GROUP BY state, effect_state
