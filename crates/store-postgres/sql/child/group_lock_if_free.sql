-- child/group_lock_if_free
SELECT total, live, held, parallel, taken FROM surefoot.child_group WHERE parent = $1 AND step = $2 FOR NO KEY UPDATE SKIP LOCKED
