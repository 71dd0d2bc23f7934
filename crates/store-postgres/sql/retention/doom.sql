-- retention/doom
INSERT INTO surefoot.doomed (root, app) VALUES ($1, $2) ON CONFLICT (root) DO NOTHING
