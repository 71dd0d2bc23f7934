-- event/emit
-- Events, what they matched, and the runs of those that are dispatched at once: all of an event, or nothing of it.
-- `deleting` waits, and reads, in statements of its own; a version that is gone by now was matched before its deletion.
-- `(… IN (SELECT …)) IS TRUE` keeps the sub-select a hashed one, whatever the planner believes of its size.
WITH event AS MATERIALIZED (
    SELECT x.*, surefoot.deleting(x.place, x.app, x.scope, coalesce(x.target, '')) AS deleting
    FROM unnest(
        $1::uuid[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[], $13::text[],
        $14::text[], $15::text[], $16::text[], $75::text[]
    ) WITH ORDINALITY AS x (
        id, place, app, scope, kind, dedupe_key, target, payload_hash, occurred_at, recorded_at,
        matched, status, data, context, "authorization", trace, tags, ord
    )
), gone AS MATERIALIZED (
    SELECT x.event FROM (
        SELECT * FROM unnest($17::uuid[], $21::uuid[])
        UNION ALL SELECT * FROM unnest($32::uuid[], $29::uuid[])
    ) AS x (event, version)
    WHERE NOT EXISTS (SELECT FROM surefoot.version WHERE version.id = x.version)
), recorded AS (
    INSERT INTO surefoot.event (
        id, app, scope, kind, dedupe_key, target, payload_hash, occurred_at, recorded_at, matched,
        runs, status, due_at, ended_at, tags, attempts
    ) SELECT x.id, x.app, x.scope, x.kind, x.dedupe_key, x.target, x.payload_hash, x.occurred_at,
        x.recorded_at, x.matched, coalesce(started.runs, '{}'), x.status,
        CASE WHEN x.status = 'pending' THEN x.recorded_at END,
        CASE WHEN x.status = 'dispatched' THEN x.recorded_at END, x.tags::jsonb, 0
    FROM event AS x LEFT JOIN (
        SELECT run.event, array_agg(run.id ORDER BY run.ord) AS runs
        FROM unnest($25::uuid[], $32::uuid[]) WITH ORDINALITY AS run (id, event, ord) GROUP BY run.event
    ) AS started ON started.event = x.id
    WHERE x.deleting IS NULL AND (x.id IN (SELECT event FROM gone)) IS NOT TRUE
    -- Keys in one order everywhere, so that two batches that share some do not wait for each other.
    ORDER BY x.app, x.scope, x.kind, x.dedupe_key, x.ord
    ON CONFLICT DO NOTHING RETURNING id
), payload AS (
    INSERT INTO surefoot.event_payload (event, data, context, "authorization", trace)
    SELECT x.id, x.data, x.context, x."authorization", x.trace
    FROM event AS x WHERE (x.id IN (SELECT id FROM recorded)) IS TRUE
), delivery AS (
    INSERT INTO surefoot.delivery (
        event, position, run, workflow, version, footprint, trigger_kind, "authorization"
    ) SELECT x.* FROM unnest(
        $17::uuid[], $18::bigint[], $19::uuid[], $20::text[], $21::uuid[], $22::text[], $23::text[],
        $24::text[]
    ) AS x (event, position, run, workflow, version, footprint, trigger_kind, "authorization")
    WHERE (x.event IN (SELECT id FROM recorded)) IS TRUE
), run AS (
    INSERT INTO surefoot.run (
        id, app, scope, workflow, version, footprint, mode, event, trigger_kind, occurred_at, root,
        parent_run, parent_step, parent_index, parent_depth, created_at, generation, revision, seq,
        journal_bytes, failures, step_attempt, deadline, charged, last_failure, lease_until,
        lease_length, attempt, started_at, ended_at, state, claimable_at, wake_at, detail,
        lease_owner, claim_nonce, wait_app_wide, wait_scope, wait_kind, wait_key, effect_step,
        effect_action, effect_state, effect_since, effect_evidence, cancel, signal, resume
    ) SELECT x.* FROM unnest(
        $25::uuid[], $26::text[], $27::text[], $28::text[], $29::uuid[], $30::text[], $31::text[],
        $32::uuid[], $33::text[], $34::bigint[], $35::uuid[], $36::uuid[], $37::text[],
        $38::bigint[], $39::bigint[], $40::bigint[], $41::bigint[], $42::bigint[], $43::bigint[],
        $44::bigint[], $45::bigint[], $46::bigint[], $47::text[], $48::text[], $49::text[],
        $50::bigint[], $51::bigint[], $52::bigint[], $53::bigint[], $54::bigint[], $55::text[],
        $56::bigint[], $57::bigint[], $58::text[], $59::uuid[], $60::bigint[], $61::boolean[],
        $62::text[], $63::text[], $64::text[], $65::text[], $66::text[], $67::text[], $68::bigint[],
        $69::text[], $70::text[], $71::bigint[], $72::text[]
    ) AS x (
        id, app, scope, workflow, version, footprint, mode, event, trigger_kind, occurred_at, root,
        parent_run, parent_step, parent_index, parent_depth, created_at, generation, revision, seq,
        journal_bytes, failures, step_attempt, deadline, charged, last_failure, lease_until,
        lease_length, attempt, started_at, ended_at, state, claimable_at, wake_at, detail,
        lease_owner, claim_nonce, wait_app_wide, wait_scope, wait_kind, wait_key, effect_step,
        effect_action, effect_state, effect_since, effect_evidence, cancel, signal, resume
    ) WHERE (x.event IN (SELECT id FROM recorded)) IS TRUE
), run_payload AS (
    INSERT INTO surefoot.run_payload (run, data, context, "authorization", actor, trace)
    SELECT x.run, event.data, event.context, x."authorization", x.actor, event.trace
    FROM unnest($25::uuid[], $32::uuid[], $73::text[], $74::text[])
        AS x (run, event, "authorization", actor)
    JOIN event ON event.id = x.event
    WHERE (x.event IN (SELECT id FROM recorded)) IS TRUE
), budget AS (
    INSERT INTO surefoot.root_budget (root, dimension, used, cap)
    SELECT x.run, caps.key, 0, caps.value::bigint
    FROM unnest($25::uuid[], $32::uuid[], $29::uuid[]) AS x (run, event, version)
    JOIN surefoot.version ON version.id = x.version
    CROSS JOIN LATERAL json_each_text(version.budget::json) AS caps
    WHERE (x.event IN (SELECT id FROM recorded)) IS TRUE
)
SELECT x.deleting, (x.id IN (SELECT id FROM recorded)) IS TRUE AS is_recorded,
    (x.id IN (SELECT event FROM gone)) IS TRUE AS is_gone
FROM event AS x ORDER BY x.ord
