-- event/insert
INSERT INTO surefoot_event (
    id, app, scope, kind, dedupe_key, target, payload_hash, occurred_at, recorded_at,
    matched, runs, status, due_at, ended_at, tags, attempts
) SELECT * FROM (VALUES /*rows*/) WHERE column1 IS NOT NULL
