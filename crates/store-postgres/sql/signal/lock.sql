-- signal/lock
-- Signals' locks have a first number of their own, `sign` in ASCII.
SELECT pg_advisory_xact_lock(1936287598, $1)
