-- signal/insert
INSERT INTO surefoot_signal (app, app_wide, scope, kind, key, data, recorded_at, more)
VALUES (?, ?, ?, ?, ?, ?, ?, 0)
ON CONFLICT (app, app_wide, scope, kind, key) DO NOTHING
