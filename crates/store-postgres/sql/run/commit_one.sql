-- run/commit_one
-- A step, mark or end of one run whose row this transaction has locked. It runs under whatever settings the application
-- has: one row by its key is planned alike under all of them. Nothing is written in any other transaction than $5.
WITH clock AS MATERIALIZED (
    SELECT surefoot.clock() + $2 AS now
), written AS (
    UPDATE surefoot.run AS r SET
    revision = r.revision + 1, seq = x.seq, journal_bytes = x.journal_bytes,
    failures = x.failures, step_attempt = x.step_attempt, deadline = x.deadline,
    charged = x.charged, last_failure = x.last_failure, ended_at = x.ended_at, state = x.state,
    wake_at = x.wake_at, detail = x.detail, effect_step = x.effect_step,
    effect_action = x.effect_action, effect_state = x.effect_state, effect_since = x.effect_since,
    effect_evidence = x.effect_evidence,
    effectful = x.effect_step IS NOT NULL OR (x.state = 'running' AND r.effectful),
    claimable_at = CASE WHEN x.state = 'running' THEN r.claimable_at ELSE x.claimable_at END,
    lease_until = CASE WHEN x.state = 'running' THEN r.lease_until END,
    lease_length = CASE WHEN x.state = 'running' THEN r.lease_length END,
    lease_owner = CASE WHEN x.state = 'running' THEN r.lease_owner END,
    claim_nonce = CASE WHEN x.state = 'running' THEN r.claim_nonce END
    FROM (SELECT ($1::surefoot.after).*) AS x
    WHERE r.id = x.id AND r.generation = x.generation AND r.revision = x.revision
        AND (r.state = 'running' AND r.signal IS NULL AND r.resume IS NULL AND r.cancel IS NULL) IS TRUE
        AND pg_current_xact_id_if_assigned()::text = $5
    RETURNING r.id, r.lease_until, r.lease_length
), journal AS (
    INSERT INTO surefoot.journal (run, seq, count, generation, at, facts)
    SELECT x.run, x.seq, x.count, x.generation, (SELECT now FROM clock), x.facts
    FROM (SELECT ($3::surefoot.facts).*) AS x WHERE x.run IN (SELECT id FROM written)
), results AS (
    INSERT INTO surefoot.run_result (run, result)
    SELECT x.run, x.result
    FROM (SELECT ($4::surefoot.result).*) AS x WHERE x.run IN (SELECT id FROM written)
)
SELECT lease_until AS until, lease_length AS length, (SELECT now FROM clock) AS now FROM written
