-- operator/tagged
SELECT runs FROM surefoot.event WHERE app = $1 AND tags @> $2::jsonb LIMIT $3
