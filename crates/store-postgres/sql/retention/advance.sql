-- retention/advance
UPDATE surefoot.deletion SET phase = $4, cursor = $5 WHERE app = $1 AND scope = $2 AND workflow = $3
