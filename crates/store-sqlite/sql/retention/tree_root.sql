-- retention/tree_root
SELECT no, app FROM surefoot_run WHERE id = ?
