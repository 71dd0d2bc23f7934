-- retention/place_events
SELECT id FROM surefoot.event
WHERE app = $1 AND scope = $2 AND id > $4 AND ($3 = '' OR target = $3)
ORDER BY id LIMIT $5
