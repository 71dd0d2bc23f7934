-- run/signaled
-- Runs that still wait though their signal was sent: more waited for it than are woken at once.
SELECT run.id FROM surefoot.signal CROSS JOIN LATERAL (
    SELECT id FROM surefoot.run
    WHERE run.app = signal.app AND run.wait_app_wide = signal.app_wide AND run.wait_scope = signal.scope
        AND run.wait_kind = signal.kind AND run.wait_key = signal.key
    LIMIT $2
) AS run
WHERE signal.app = $1 AND signal.more
LIMIT $2
