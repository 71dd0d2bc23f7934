-- retention/tree_held
SELECT no FROM surefoot_run WHERE (id = ?1 OR (root = ?1 AND parent_run IS NOT NULL))
    AND state || ' ' || ifnull(effect_state, '-') IN (SELECT value FROM json_each(?2)) LIMIT 1
