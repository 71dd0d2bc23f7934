-- child/ids
SELECT id FROM surefoot.run WHERE parent_run = $1 AND parent_step = $2
