-- child/cancel_from
UPDATE surefoot.child_group SET cancel_from = $3 WHERE parent = $1 AND step = $2
