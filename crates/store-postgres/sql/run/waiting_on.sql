-- run/waiting_on
SELECT id FROM surefoot.run
WHERE app = $1 AND wait_app_wide = $2 AND wait_scope = $3 AND wait_kind = $4 AND wait_key = $5
ORDER BY id LIMIT $6
