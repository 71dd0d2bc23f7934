-- meta/schema
SELECT value FROM surefoot.meta WHERE key = 'schema'
