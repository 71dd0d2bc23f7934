-- child/ids
SELECT id FROM surefoot_run WHERE parent_run = ?1 AND parent_step = ?2
