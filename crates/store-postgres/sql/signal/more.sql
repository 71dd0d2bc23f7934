-- signal/more
UPDATE surefoot.signal SET more = true
WHERE app = $1 AND app_wide = $2 AND scope = $3 AND kind = $4 AND key = $5
