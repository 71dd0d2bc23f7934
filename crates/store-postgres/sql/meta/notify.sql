-- meta/notify
SELECT pg_notify($1, name) FROM unnest($2::text[]) AS x (name)
