-- child/over
-- Parents that still wait though every child has ended.
-- CROSS JOIN keeps the order: from the few groups to their parents.
SELECT run.no FROM surefoot_child_group AS child_group CROSS JOIN surefoot_run AS run ON run.id = child_group.parent
WHERE child_group.app = ?1 AND child_group.live = 0 AND child_group.awaited = 1
    AND run.state = 'waiting'
LIMIT ?2
