-- retention/tree_in_state
SELECT no FROM surefoot_run WHERE (id = ?1 OR (root = ?1 AND parent_run IS NOT NULL))
    AND state IN (SELECT value FROM json_each(?2)) LIMIT 1
