-- child/take
UPDATE surefoot.child_group SET taken = true, awaited = false WHERE parent = $1 AND step = $2
