-- run/footprints
WITH RECURSIVE live (hash) AS (
    SELECT min(footprint) FROM surefoot_run WHERE app = ?1 AND ended_at IS NULL
    UNION ALL
    SELECT (SELECT min(footprint) FROM surefoot_run
        WHERE app = ?1 AND ended_at IS NULL AND footprint > live.hash)
    FROM live WHERE live.hash IS NOT NULL
)
SELECT (SELECT footprint FROM surefoot_version WHERE footprint_hash = live.hash LIMIT 1) AS footprint
FROM live WHERE live.hash IS NOT NULL
