-- workflow/ensure
INSERT INTO surefoot_workflow (app, scope, key, created_at) VALUES (?, ?, ?, ?)
ON CONFLICT (app, scope, key) DO UPDATE SET key = excluded.key
RETURNING no
