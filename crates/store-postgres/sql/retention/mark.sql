-- retention/mark
-- Who emits on an older snapshot finds out by the number; see `deleting`.
WITH counted AS (
    UPDATE surefoot.meta SET value = (value::bigint + 1)::text WHERE key = 'deletions'
)
INSERT INTO surefoot.deletion (app, scope, workflow, forced, actor, reason, phase, cursor)
VALUES ($1, $2, $3, $4, $5, $6, 'cancel', NULL)
ON CONFLICT (app, scope, workflow) DO UPDATE SET
    forced = excluded.forced, actor = excluded.actor, reason = excluded.reason
