-- operator/count_tagged
-- By the index of tags: as in `tagged`.
SELECT count(*) AS count FROM (
    SELECT FROM surefoot.event WHERE tags @> $2::jsonb AND app IS NOT DISTINCT FROM $1 LIMIT $3
) AS tagged
