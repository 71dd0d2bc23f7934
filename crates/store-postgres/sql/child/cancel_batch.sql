-- child/cancel_batch
-- Those that live, and those below whom somebody may: ended with children, and without a cancel of their own, which
-- would have been carried on.
SELECT id, parent_index, ended_at IS NOT NULL AS ended FROM surefoot.run
WHERE parent_run = $1 AND parent_step = $2 AND parent_index >= $3
    AND (ended_at IS NULL OR (cancel IS NULL
        AND EXISTS (SELECT FROM surefoot.child_group WHERE child_group.parent = run.id)))
ORDER BY parent_index LIMIT $4
