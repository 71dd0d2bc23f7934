-- retention/event
SELECT no, app, scope, status, emptied_at IS NOT NULL AS is_expired FROM surefoot_event WHERE id = ?
