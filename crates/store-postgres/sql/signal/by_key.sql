-- signal/by_key
SELECT no, data FROM surefoot.signal
WHERE app = $1 AND app_wide = $2 AND scope = $3 AND kind = $4 AND key = $5
