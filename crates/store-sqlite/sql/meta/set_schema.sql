-- meta/set_schema
INSERT INTO surefoot_meta (key, value) VALUES ('schema', ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
