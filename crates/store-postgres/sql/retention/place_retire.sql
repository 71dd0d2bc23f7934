-- retention/place_retire
UPDATE surefoot.workflow SET active = NULL
WHERE app = $1 AND scope = $2 AND ($3 = '' OR key = $3) AND active IS NOT NULL
