-- run/footprints
WITH RECURSIVE live (hash) AS (
    (SELECT footprint FROM surefoot.run WHERE app = $1 AND ended_at IS NULL ORDER BY footprint LIMIT 1)
    UNION ALL
    SELECT (SELECT footprint FROM surefoot.run
        WHERE app = $1 AND ended_at IS NULL AND footprint > live.hash ORDER BY footprint LIMIT 1)
    FROM live WHERE live.hash IS NOT NULL
)
SELECT (SELECT footprint FROM surefoot.version WHERE footprint_hash = live.hash LIMIT 1) AS footprint
FROM live WHERE live.hash IS NOT NULL
