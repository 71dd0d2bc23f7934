-- session/report
INSERT INTO surefoot_worker_session (id, app, name, offers, slots, busy, stuck, ended, seen_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    app = excluded.app, name = excluded.name, offers = excluded.offers, slots = excluded.slots,
    busy = excluded.busy, stuck = excluded.stuck, ended = excluded.ended, seen_at = excluded.seen_at
