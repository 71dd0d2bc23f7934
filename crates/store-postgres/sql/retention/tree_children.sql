-- retention/tree_children
SELECT id, state || ' ' || coalesce(effect_state, '-') AS word FROM surefoot.run
WHERE root = $1 AND parent_run IS NOT NULL LIMIT $2 FOR UPDATE
