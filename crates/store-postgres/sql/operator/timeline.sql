-- operator/timeline
-- What has ended stands in an index of its own, with all that is asked here. The inner queries stay ones of their own, so
-- that the planner, who knows nothing of slices, counts them without sorting.
SELECT slice, state, count(*) AS count, max(lag) AS worst_lag FROM (
    SELECT (created_at - $2) / $4 AS slice, state, started_at - created_at AS lag
    FROM surefoot.run
    WHERE app = $1 AND created_at >= $2 AND created_at < $3 AND parent_run IS NULL AND mode = 'execute'
        AND ended_at IS NOT NULL AND ($5::text IS NULL OR scope = $5)
    OFFSET 0
) AS ended GROUP BY slice, state
UNION ALL
SELECT slice, state, count(*) AS count, max(lag) AS worst_lag FROM (
    SELECT (created_at - $2) / $4 AS slice, state, started_at - created_at AS lag
    FROM surefoot.run
    WHERE app = $1 AND created_at >= $2 AND created_at < $3 AND parent_run IS NULL AND mode = 'execute'
        AND ended_at IS NULL AND ($5::text IS NULL OR scope = $5)
    OFFSET 0
) AS live GROUP BY slice, state
ORDER BY slice, state
