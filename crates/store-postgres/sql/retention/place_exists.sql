-- retention/place_exists
SELECT EXISTS (
    SELECT 1 FROM surefoot.workflow WHERE app = $1 AND scope = $2 AND ($3 = '' OR key = $3)
) OR ($3 = '' AND EXISTS (SELECT 1 FROM surefoot.event WHERE app = $1 AND scope = $2))
    OR ($3 = '' AND EXISTS (
        SELECT 1 FROM surefoot.signal WHERE app = $1 AND NOT app_wide AND scope = $2
    )) AS is_there
