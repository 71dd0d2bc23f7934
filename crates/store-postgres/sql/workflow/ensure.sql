-- workflow/ensure
-- The update takes the lock of a row that is there.
INSERT INTO surefoot.workflow (app, scope, key, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (app, scope, key) DO UPDATE SET created_at = workflow.created_at
RETURNING no
