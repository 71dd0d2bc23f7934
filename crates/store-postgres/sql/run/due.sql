-- run/due
-- All that a pass of recovery may find, in one question: an idle worker asks it about once a second.
WITH clock AS MATERIALIZED (SELECT surefoot.clock() + $3 AS now)
-- Runs that still wait though their signal was sent: more waited for it than are woken at once.
(SELECT 'wake' AS kind, run.id, NULL AS step FROM surefoot.signal CROSS JOIN LATERAL (
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
