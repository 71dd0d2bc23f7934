-- run/claimable
-- What the same claim took before, if its answer was lost; else the first runs that are due, one footprint at a time:
-- one condition over all of them would read and sort every due run. What cannot be claimed though it is due, canceled
-- runs with nothing to explain, is left to recovery.
WITH before AS MATERIALIZED (
    SELECT run.* FROM surefoot.run WHERE lease_owner = $5 AND claim_nonce = $6
), due AS MATERIALIZED (
    SELECT due.* FROM unnest($3::text[]) AS wanted (footprint) CROSS JOIN LATERAL (
        SELECT run.* FROM surefoot.run
        WHERE run.app = $1 AND run.mode = $2 AND run.footprint = wanted.footprint AND run.claimable_at <= $4
            AND (run.lease_until IS NULL OR run.lease_until <= $4)
            AND (run.cancel IS NULL OR run.effect_state IN ('marked', 'ambiguous')) /*tree*/
            AND NOT EXISTS (SELECT FROM before)
        ORDER BY run.claimable_at, run.id LIMIT $7 FOR NO KEY UPDATE SKIP LOCKED
    ) AS due
)
SELECT before.*, true AS is_claimed FROM before UNION ALL SELECT due.*, false FROM due
