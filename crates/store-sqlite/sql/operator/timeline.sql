-- operator/timeline
SELECT (created_at - ?2) / ?4 AS slice, state, count(*) AS count,
    max(started_at - created_at) AS worst_lag
FROM surefoot_run
WHERE app = ?1 AND created_at >= ?2 AND created_at < ?3 AND parent_run IS NULL AND mode = 'execute'
    AND (?5 IS NULL OR scope = ?5)
GROUP BY 1, 2 ORDER BY 1, 2
