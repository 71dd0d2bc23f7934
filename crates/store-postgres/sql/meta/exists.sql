-- meta/exists
SELECT to_regclass('surefoot.meta') IS NOT NULL AS exists
