-- run/signaled
-- Runs that still wait though their signal was sent: more waited for it than are woken at once.
-- CROSS JOIN keeps the order: from the few signals to their runs.
SELECT run.no FROM surefoot_signal AS signal CROSS JOIN surefoot_run AS run ON run.app = signal.app
    AND run.wait_app_wide = signal.app_wide AND run.wait_scope = signal.scope
    AND run.wait_kind = signal.kind AND run.wait_key = signal.key
WHERE signal.app = ?1 AND signal.more = 1
LIMIT ?2
