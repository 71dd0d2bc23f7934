-- child/cancel
-- Cancel was requested of the parent: it is carried on to the children from the first one on.
UPDATE child_group SET cancel_from = 0, awaited = 0 WHERE parent = ?1
