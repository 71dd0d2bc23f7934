-- retention/place_share
-- Until the end of the transaction no deletion of the place begins. The first number is `dele` in ASCII.
SELECT pg_advisory_xact_lock_shared(1684368485, $1)
