-- child/groups
SELECT step, total, live, held, parallel FROM surefoot.child_group WHERE parent = $1 ORDER BY step
