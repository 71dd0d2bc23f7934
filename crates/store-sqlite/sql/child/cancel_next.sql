-- child/cancel_next
-- A group on whose children a cancel is on its way.
SELECT parent, step, cancel_from FROM surefoot_child_group
WHERE app = ?1 AND cancel_from IS NOT NULL AND (?2 IS NULL OR parent = ?2)
LIMIT 1
