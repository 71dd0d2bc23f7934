-- run/renew
-- The claim index follows the end of the lease only before it is due: a renewal is no reason to write every index.
WITH clock AS MATERIALIZED (
    SELECT surefoot.clock() + $4 AS now
), free AS MATERIALIZED (
    SELECT id FROM surefoot.run WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED
), renewed AS (
    UPDATE surefoot.run AS r SET
        lease_until = clock.now + $5, lease_length = $5,
        claimable_at = CASE WHEN r.claimable_at BETWEEN clock.now + $5 / 2 AND clock.now + $5
            THEN r.claimable_at ELSE clock.now + $5 END
    FROM unnest($1::uuid[], $2::bigint[]) AS x (id, generation), clock
    WHERE r.id = x.id AND r.generation = x.generation AND (r.lease_owner = $3) IS TRUE
        AND (x.id IN (SELECT id FROM free)) IS TRUE
    RETURNING r.id, r.lease_until, r.cancel IS NOT NULL AS canceled
)
SELECT id, lease_until, canceled FROM renewed
