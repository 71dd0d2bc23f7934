-- child/await
-- A parent waits for the group from now on, or does no more.
UPDATE surefoot.child_group SET awaited = $3 WHERE parent = $1 AND step = $2
