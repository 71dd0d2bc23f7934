-- child/take
UPDATE surefoot_child_group SET taken = 1, awaited = 0 WHERE parent = ?1 AND step = ?2
