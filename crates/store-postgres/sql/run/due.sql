-- run/due
-- All that a worker's scan may find, in one question: an idle worker asks it about once a second, and no other.
WITH RECURSIVE clock AS MATERIALIZED (SELECT surefoot.clock() + $3 AS now), live (hash) AS (
    (SELECT footprint FROM surefoot.run WHERE app = $1 AND ended_at IS NULL ORDER BY footprint LIMIT 1)
    UNION ALL
    SELECT (SELECT footprint FROM surefoot.run
        WHERE app = $1 AND ended_at IS NULL AND footprint > live.hash ORDER BY footprint LIMIT 1)
    FROM live WHERE live.hash IS NOT NULL
)
-- Runs that still wait though their signal was sent: more waited for it than are woken at once.
(SELECT 'wake' AS kind, run.id, NULL AS what FROM surefoot.signal CROSS JOIN LATERAL (
    SELECT id FROM surefoot.run
    WHERE run.app = signal.app AND run.wait_app_wide = signal.app_wide AND run.wait_scope = signal.scope
        AND run.wait_kind = signal.kind AND run.wait_key = signal.key
    LIMIT $2
) AS run
WHERE signal.app = $1 AND signal.more
LIMIT $2)
UNION ALL
-- Parents that still wait though every child has ended.
(SELECT 'wake', run.id, NULL FROM surefoot.child_group JOIN surefoot.run ON run.id = child_group.parent
WHERE child_group.app = $1 AND child_group.live = 0 AND child_group.awaited AND (run.state = 'waiting') IS TRUE
LIMIT $2)
UNION ALL
-- Runs whose wait has reached its deadline.
(SELECT 'wake', id, NULL FROM surefoot.run
WHERE app = $1 AND wake_at <= (SELECT now FROM clock) ORDER BY wake_at LIMIT $2)
UNION ALL
-- Canceled runs whose worker is gone.
(SELECT 'gone', id, NULL FROM surefoot.run
WHERE app = $1 AND cancel IS NOT NULL AND lease_owner IS NOT NULL
    AND claimable_at <= (SELECT now FROM clock) AND lease_until <= (SELECT now FROM clock)
ORDER BY claimable_at LIMIT $2)
UNION ALL
-- Groups that have children to let go, since the end of one could not do it.
(SELECT 'room', parent, step FROM surefoot.child_group
WHERE app = $1 AND held > 0 AND live - held < parallel LIMIT $2)
UNION ALL
-- Whether a cancel is on its way to children.
SELECT 'cancel', NULL, NULL
WHERE EXISTS (SELECT FROM surefoot.child_group WHERE app = $1 AND cancel_from IS NOT NULL)
UNION ALL
-- Whether runs of a deferred event are to be created.
(SELECT 'event', NULL, NULL FROM surefoot.event
WHERE app = $1 AND due_at <= (SELECT now FROM clock) ORDER BY due_at LIMIT 1)
UNION ALL
-- What workers must be able to run, and whether a run of it is due. No EXISTS, which a plan may make a table of all of.
SELECT CASE WHEN (SELECT true FROM surefoot.run
        WHERE app = $1 AND mode = $4 AND footprint = live.hash AND claimable_at <= (SELECT now FROM clock)
            AND (lease_until IS NULL OR lease_until <= (SELECT now FROM clock))
            AND (cancel IS NULL OR effect_state IN ('marked', 'ambiguous'))
        LIMIT 1) THEN 'claim' ELSE 'live' END, NULL,
    (SELECT footprint FROM surefoot.version WHERE footprint_hash = live.hash LIMIT 1)
FROM live WHERE live.hash IS NOT NULL
