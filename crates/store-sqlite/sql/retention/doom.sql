-- retention/doom
INSERT INTO surefoot_doomed (root, app) VALUES (?1, ?2) ON CONFLICT (root) DO NOTHING
