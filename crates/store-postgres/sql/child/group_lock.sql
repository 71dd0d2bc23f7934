-- child/group_lock
SELECT total, live, held, parallel, taken FROM surefoot.child_group WHERE parent = $1 AND step = $2 FOR NO KEY UPDATE
