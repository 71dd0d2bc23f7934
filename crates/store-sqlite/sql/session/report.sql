-- session/report
INSERT INTO surefoot_worker_session (id, app, name, mode, offers, tree, slots, busy, stuck, ended, seen_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    app = excluded.app, name = excluded.name, mode = excluded.mode, offers = excluded.offers, tree = excluded.tree,
    slots = excluded.slots, busy = excluded.busy, stuck = excluded.stuck, ended = excluded.ended, seen_at = excluded.seen_at
