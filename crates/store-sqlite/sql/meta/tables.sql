-- meta/tables
-- The store's own mark first: one statement sees it, or none of the store's tables.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
ORDER BY name <> 'surefoot_meta', name LIMIT 6
