-- run/hold
-- One run, its row locked, whether its tree has counters, and the transaction's own number. The clock is read once the
-- lock is there.
SELECT held.*, surefoot.clock() AS now, pg_current_xact_id()::text AS transaction,
    EXISTS (SELECT FROM surefoot.root_budget WHERE root_budget.root = held.root) AS is_counted
FROM (SELECT run.* FROM surefoot.run WHERE run.id = $1 FOR NO KEY UPDATE) AS held
