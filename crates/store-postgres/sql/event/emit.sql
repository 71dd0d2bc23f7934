-- event/emit
-- Events, what they matched, and the runs of those that are dispatched at once, with what is known of them from the
-- beginning: all of an event, or nothing of it.
-- Nothing is recorded once the catalog is another one than what they matched in. The runs' times count from now on.
-- `deleting` waits, and reads, in statements of its own; whoever deletes a place has changed the catalog before.
-- `(… IN (SELECT …)) IS TRUE` keeps the sub-select a hashed one, whatever the planner believes of its size.
WITH clock AS MATERIALIZED (
    SELECT surefoot.clock() + $1 AS now,
        (SELECT value FROM surefoot.meta WHERE key = 'catalog') = $2 AS is_current
), event AS MATERIALIZED (
    SELECT x.*, coalesce(x.occurred_at, clock.now) AS occurred, clock.now, clock.is_current,
        surefoot.deleting(x.place, x.app, x.scope, coalesce(x.target, '')) AS deleting
    FROM unnest($3::surefoot.new_event[]) WITH ORDINALITY AS x CROSS JOIN clock
), recorded AS (
    INSERT INTO surefoot.event (
        id, app, scope, kind, dedupe_key, target, payload_hash, occurred_at, recorded_at, matched,
        runs, status, due_at, ended_at, tags, attempts
    ) SELECT x.id, x.app, x.scope, x.kind, x.dedupe_key, x.target, x.payload_hash, x.occurred, x.now,
        x.matched, x.runs, x.status, CASE WHEN x.status = 'pending' THEN x.now END,
        CASE WHEN x.status = 'dispatched' THEN x.now END, x.tags::jsonb, 0
    FROM event AS x WHERE x.deleting IS NULL AND x.is_current
    -- Keys in one order everywhere, so that two batches that share some do not wait for each other.
    ORDER BY x.app, x.scope, x.kind, x.dedupe_key, x.ordinality
    ON CONFLICT DO NOTHING RETURNING id
), payload AS (
    INSERT INTO surefoot.event_payload (event, data, context, "authorization", trace)
    SELECT x.id, x.data, x.context, x."authorization", x.trace
    FROM event AS x WHERE (x.id IN (SELECT id FROM recorded)) IS TRUE
), delivery AS (
    INSERT INTO surefoot.delivery (
        event, position, run, workflow, version, footprint, trigger_kind, "authorization"
    ) SELECT x.event, x.position, x.run, x.workflow, x.version, x.footprint, x.trigger_kind, x."authorization"
    FROM unnest($4::surefoot.delivery[]) AS x WHERE (x.event IN (SELECT id FROM recorded)) IS TRUE
), run AS (
    INSERT INTO surefoot.run (
        id, app, scope, workflow, version, footprint, mode, event, trigger_kind, occurred_at, root,
        parent_run, parent_step, parent_index, parent_depth, created_at, generation, revision, seq,
        journal_bytes, failures, step_attempt, deadline, charged, last_failure, lease_until,
        lease_length, attempt, started_at, ended_at, state, claimable_at, lease_owner, claim_nonce,
        wake_at, wait_app_wide, wait_scope, wait_kind, wait_key, effect_step, effect_action,
        effect_state, effect_since, effect_evidence, effectful, cancel, detail, signal, resume
    ) SELECT x.id, x.app, x.scope, x.workflow, x.version, x.footprint, x.mode, x.event, x.trigger_kind, event.occurred,
        x.root, x.parent_run, x.parent_step, x.parent_index, x.parent_depth, x.created_at + event.now, x.generation,
        x.revision, x.seq, x.journal_bytes, x.failures, x.step_attempt, x.deadline, x.charged, x.last_failure,
        x.lease_until + event.now, x.lease_length, x.attempt, x.started_at + event.now, x.ended_at, x.state,
        x.claimable_at + event.now, x.lease_owner, x.claim_nonce, x.wake_at, x.wait_app_wide, x.wait_scope,
        x.wait_kind, x.wait_key, x.effect_step, x.effect_action, x.effect_state, x.effect_since, x.effect_evidence,
        x.effectful, x.cancel, x.detail, x.signal, x.resume
    FROM unnest($5::surefoot.run[]) AS x JOIN event ON event.id = x.event
    WHERE (x.event IN (SELECT id FROM recorded)) IS TRUE
), run_payload AS (
    INSERT INTO surefoot.run_payload (run, data, context, "authorization", actor, trace)
    SELECT x.run, event.data, event.context, x."authorization", x.actor, event.trace
    FROM unnest($6::surefoot.new_run[]) AS x JOIN event ON event.id = x.event
    WHERE (x.event IN (SELECT id FROM recorded)) IS TRUE
), journal AS (
    INSERT INTO surefoot.journal (run, seq, count, generation, at, facts)
    SELECT x.run, x.seq, x.count, x.generation, event.now, x.facts
    FROM unnest($7::surefoot.facts[]) AS x JOIN event ON event.ordinality = x.entry
    WHERE (event.id IN (SELECT id FROM recorded)) IS TRUE
), budget AS (
    INSERT INTO surefoot.root_budget (root, dimension, used, cap)
    SELECT x.run, caps.key, 0, caps.value::bigint
    FROM unnest($6::surefoot.new_run[]) AS x JOIN surefoot.version ON version.id = x.version
    CROSS JOIN LATERAL json_each_text(version.budget::json) AS caps
    WHERE x.has_budget AND (x.event IN (SELECT id FROM recorded)) IS TRUE
)
SELECT x.now, x.is_current, x.deleting, (x.id IN (SELECT id FROM recorded)) IS TRUE AS is_recorded
FROM event AS x ORDER BY x.ordinality
