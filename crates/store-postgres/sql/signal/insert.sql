-- signal/insert
INSERT INTO surefoot.signal (app, app_wide, scope, kind, key, data, recorded_at, more)
VALUES ($1, $2, $3, $4, $5, $6, $7, false)
ON CONFLICT (app, app_wide, scope, kind, key) DO NOTHING
