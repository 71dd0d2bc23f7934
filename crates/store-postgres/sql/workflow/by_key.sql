-- workflow/by_key
-- Whoever changes what is live holds the row.
SELECT no, active FROM surefoot.workflow WHERE app = $1 AND scope = $2 AND key = $3
FOR NO KEY UPDATE
