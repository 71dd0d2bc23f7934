-- meta/schema
SELECT value FROM meta WHERE key = 'schema'
