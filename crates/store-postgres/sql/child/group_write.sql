-- child/group_write
INSERT INTO surefoot.child_group (parent, step, app, total, live, held, parallel, taken, awaited)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, false)
ON CONFLICT (parent, step) DO UPDATE SET
    total = excluded.total, live = excluded.live, held = excluded.held, taken = excluded.taken
