-- retention/doom
INSERT INTO doomed (root, app) VALUES (?1, ?2) ON CONFLICT (root) DO NOTHING
