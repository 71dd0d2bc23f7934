-- retention/prune_signals
-- The newest row stays, so that no row number is ever given twice: runs remember signals by theirs.
DELETE FROM signal WHERE no IN (
    SELECT no FROM signal
    WHERE app = ?1 AND spent_at < ?2 AND more = 0 AND (?3 IS NULL OR (app_wide = 0 AND scope = ?3))
        AND no < (SELECT max(no) FROM signal)
    ORDER BY spent_at LIMIT ?4
)
