-- child/over
-- Parents that still wait though every child has ended.
SELECT run.id FROM surefoot.child_group JOIN surefoot.run ON run.id = child_group.parent
WHERE child_group.app = $1 AND child_group.live = 0 AND child_group.awaited AND (run.state = 'waiting') IS TRUE
LIMIT $2
