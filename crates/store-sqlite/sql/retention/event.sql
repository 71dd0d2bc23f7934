-- retention/event
SELECT no, app, scope, status, emptied_at IS NOT NULL AS is_expired FROM event WHERE id = ?
