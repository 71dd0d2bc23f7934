-- child/room
-- Groups that have children to let go, since the end of one could not do it.
SELECT parent, step FROM surefoot.child_group
WHERE app = $1 AND held > 0 AND live - held < parallel LIMIT $2
