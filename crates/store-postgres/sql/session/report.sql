-- session/report
INSERT INTO surefoot.worker_session (id, app, name, mode, offers, tree, slots, busy, stuck, ended, seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (id) DO UPDATE SET
    app = excluded.app, name = excluded.name, mode = excluded.mode, offers = excluded.offers, tree = excluded.tree,
    slots = excluded.slots, busy = excluded.busy, stuck = excluded.stuck, ended = excluded.ended, seen_at = excluded.seen_at
