-- event/new
-- How many of these events are recorded neither under their id nor under their key, and belong where nothing is being
-- deleted.
WITH x (id, app, scope, kind, dedupe_key, target) AS (VALUES /*rows*/)
SELECT count(*) AS new FROM x
WHERE x.id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM surefoot_event AS event WHERE event.id = x.id)
    AND NOT EXISTS (
        SELECT 1 FROM surefoot_event AS event
        WHERE event.app = x.app AND event.scope = x.scope AND event.kind = x.kind AND event.dedupe_key = x.dedupe_key
    )
    AND NOT EXISTS (
        SELECT 1 FROM surefoot_deletion AS deletion
        WHERE deletion.app = x.app AND deletion.scope = x.scope AND deletion.workflow IN ('', x.target)
    )
