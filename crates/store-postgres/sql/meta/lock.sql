-- meta/lock
-- Until the end of the transaction, whoever migrates is alone. The number is `surefoot` in ASCII.
SELECT pg_advisory_xact_lock(8319681666472701812)
