-- meta/exists
-- Of a table, since what `to_regclass` knows may be older than the lock that was waited for.
SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'surefoot' AND c.relname = 'meta') AS exists
