-- meta/exists
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'meta'
