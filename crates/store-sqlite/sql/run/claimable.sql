-- run/claimable
-- What cannot be claimed though it is due, canceled runs with nothing to explain, is left to recovery.
SELECT no, id, claimable_at FROM surefoot_run
WHERE app = ?1 AND mode = ?2 AND footprint = ?3 AND claimable_at <= ?4
    AND (cancel IS NULL OR effect_state IN ('marked', 'ambiguous'))
    AND (?6 IS NULL OR root = ?6)
ORDER BY claimable_at, id LIMIT ?5
