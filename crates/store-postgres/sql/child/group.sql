-- child/group
SELECT total, live, held, parallel, taken FROM surefoot.child_group WHERE parent = $1 AND step = $2
