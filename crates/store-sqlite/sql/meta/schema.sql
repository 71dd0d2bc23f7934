-- meta/schema
SELECT value FROM surefoot_meta WHERE key = 'schema'
