-- retention/event
SELECT id, app, scope, status, emptied_at IS NOT NULL AS is_expired FROM surefoot.event WHERE id = $1
FOR NO KEY UPDATE
