-- operator/effects
SELECT id FROM surefoot.run WHERE app = $1 AND effect_state IS NOT NULL
ORDER BY effect_state = 'abandoned_unknown', effect_since, id LIMIT $2
