-- signal/settle
UPDATE surefoot_signal AS signal SET more = 0 WHERE app = ?1 AND more = 1 AND NOT EXISTS (
    SELECT 1 FROM surefoot_run AS run WHERE run.app = signal.app
        AND run.wait_app_wide = signal.app_wide AND run.wait_scope = signal.scope
        AND run.wait_kind = signal.kind AND run.wait_key = signal.key
)
