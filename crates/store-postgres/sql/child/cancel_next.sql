-- child/cancel_next
-- A group on whose children a cancel is on its way, besides those that this pass has left.
SELECT parent, step, cancel_from FROM surefoot.child_group
WHERE app = $1 AND cancel_from IS NOT NULL AND ($2::uuid IS NULL OR parent = $2)
    AND NOT EXISTS (SELECT FROM unnest($3::uuid[], $4::text[]) AS x (parent, step)
        WHERE x.parent = child_group.parent AND x.step = child_group.step)
LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
