-- retention/events_held
-- Of events and runs side by side: the events of which a tree of runs has a member in one of the states.
-- A sub-select of one value is asked per row, whatever the planner believes; an EXISTS may become a scan of all runs.
SELECT DISTINCT x.event FROM unnest($1::uuid[], $2::uuid[]) AS x (event, run)
WHERE (SELECT true FROM surefoot.run WHERE run.id = x.run AND run.state = ANY($3)) IS TRUE
    OR (
        SELECT true FROM surefoot.run AS member
        WHERE member.root = x.run AND member.parent_run IS NOT NULL AND member.state = ANY($3) LIMIT 1
    ) IS TRUE
