-- retention/tree_root
-- Who has it locked works on it: then it is for another time.
SELECT id, app FROM surefoot.run WHERE id = $1 FOR UPDATE SKIP LOCKED
