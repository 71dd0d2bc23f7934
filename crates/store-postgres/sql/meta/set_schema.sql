-- meta/set_schema
INSERT INTO surefoot.meta (key, value) VALUES ('schema', $1)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
