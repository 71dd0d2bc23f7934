-- retention/tree_root
SELECT no, app FROM run WHERE id = ?
