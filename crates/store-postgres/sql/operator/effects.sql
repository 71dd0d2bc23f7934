-- operator/effects
-- One whose run was given up though it is known to have happened asks nothing of anybody.
SELECT id FROM surefoot.run WHERE app = $1 AND effectful AND effect_state IS NOT NULL AND ($3::text IS NULL OR scope = $3)
    AND (effect_state <> 'succeeded' OR state = 'needs_attention')
ORDER BY effect_state = 'abandoned_unknown', effect_since, id LIMIT $2
