-- retention/events_held
-- Of events and runs side by side: the events of which a tree of runs has a member in one of the states.
SELECT DISTINCT x.event FROM unnest($1::uuid[], $2::uuid[]) AS x (event, run)
WHERE EXISTS (SELECT 1 FROM surefoot.run WHERE run.id = x.run AND run.state = ANY($3))
    OR EXISTS (
        SELECT 1 FROM surefoot.run AS member
        WHERE member.root = x.run AND member.parent_run IS NOT NULL AND member.state = ANY($3)
    )
