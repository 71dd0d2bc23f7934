-- retention/tree_held
SELECT id FROM surefoot.run
WHERE id = $1 AND state || ' ' || coalesce(effect_state, '-') = ANY($2)
UNION ALL
SELECT id FROM surefoot.run
WHERE root = $1 AND parent_run IS NOT NULL AND state || ' ' || coalesce(effect_state, '-') = ANY($2)
LIMIT 1
