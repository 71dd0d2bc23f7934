-- operator/timeline
-- What has ended stands in an index of its own, with all that is asked here: each slice of each state is a range of it,
-- counted without a look at the slice of each row. That it has ended is said as its index has it, word by word. What is live is less, and is looked at row by row; its inner query stays
-- one of its own, so that the planner, who knows nothing of slices, counts it without sorting.
SELECT slice, of.state, ended.count, ended.worst_lag
FROM generate_series(0, $6::bigint - 1) AS slice CROSS JOIN unnest($7::text[]) AS of (state) CROSS JOIN LATERAL (
    SELECT count(*) AS count, max(started_at - created_at) AS worst_lag FROM surefoot.run
    WHERE app = $1 AND run.state = of.state
        AND created_at >= $2 + slice * $4 AND created_at < least($3, $2 + (slice + 1) * $4)
        AND run.state IN ('succeeded', 'failed', 'canceled') AND parent_run IS NULL AND mode = 'execute'
        AND ($5::text IS NULL OR scope = $5)
) AS ended WHERE ended.count > 0
UNION ALL
SELECT slice, state, count(*) AS count, max(lag) AS worst_lag FROM (
    SELECT (created_at - $2) / $4 AS slice, state, started_at - created_at AS lag
    FROM surefoot.run
    WHERE app = $1 AND created_at >= $2 AND created_at < $3 AND parent_run IS NULL AND mode = 'execute'
        AND ended_at IS NULL AND ($5::text IS NULL OR scope = $5)
    OFFSET 0
) AS live GROUP BY slice, state
ORDER BY slice, state
