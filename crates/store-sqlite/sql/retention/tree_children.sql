-- retention/tree_children
SELECT no FROM surefoot_run WHERE root = ?1 AND parent_run IS NOT NULL LIMIT ?2
