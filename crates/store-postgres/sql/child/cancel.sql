-- child/cancel
-- Cancel was requested of these parents, or of somebody above them: it is carried on to their children from the first
-- one on.
UPDATE surefoot.child_group SET cancel_from = 0, awaited = false WHERE parent = ANY ($1)
