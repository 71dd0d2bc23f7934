-- run/footprints
-- What workers must be able to run, and whether a run of it is due.
WITH RECURSIVE live (hash) AS (
    SELECT min(footprint) FROM surefoot_run WHERE app = ?1 AND ended_at IS NULL
    UNION ALL
    SELECT (SELECT min(footprint) FROM surefoot_run
        WHERE app = ?1 AND ended_at IS NULL AND footprint > live.hash)
    FROM live WHERE live.hash IS NOT NULL
)
SELECT (SELECT footprint FROM surefoot_version WHERE footprint_hash = live.hash LIMIT 1) AS footprint,
    EXISTS (SELECT 1 FROM surefoot_run AS run
        WHERE run.app = ?1 AND run.mode = ?2 AND run.footprint = live.hash AND run.claimable_at <= ?3
            AND (run.cancel IS NULL OR run.effect_state IN ('marked', 'ambiguous'))) AS is_due
FROM live WHERE live.hash IS NOT NULL
