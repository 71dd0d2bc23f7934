-- event/insert
INSERT INTO surefoot_event (
    id, app, scope, kind, dedupe_key, target, payload_hash, occurred_at, recorded_at,
    matched, runs, status, due_at, ended_at, tags, attempts
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0);
-- In the same message; its row number is the event's.
INSERT INTO surefoot_event_payload (event, data, context, authorization, trace)
SELECT no, ?, ?, ?, ? FROM surefoot_event WHERE id = ?
