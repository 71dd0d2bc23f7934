-- retention/prune_signals
DELETE FROM surefoot.signal WHERE no = ANY(ARRAY(
    SELECT no FROM surefoot.signal
    WHERE app = $1 AND spent_at < $2 AND NOT more AND ($3::text IS NULL OR (NOT app_wide AND scope = $3))
    ORDER BY spent_at LIMIT $4
))
