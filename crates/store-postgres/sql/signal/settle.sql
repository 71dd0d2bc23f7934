-- signal/settle
-- As a value, so that the planner looks for one waiting run by all that identifies the signal.
UPDATE surefoot.signal SET more = false WHERE app = $1 AND more AND (
    SELECT true FROM surefoot.run WHERE run.app = signal.app
        AND run.wait_app_wide = signal.app_wide AND run.wait_scope = signal.scope
        AND run.wait_kind = signal.kind AND run.wait_key = signal.key
    LIMIT 1
) IS NULL
