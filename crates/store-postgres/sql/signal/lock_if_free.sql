-- signal/lock_if_free
SELECT pg_try_advisory_xact_lock(1936287598, $1) AS is_mine
