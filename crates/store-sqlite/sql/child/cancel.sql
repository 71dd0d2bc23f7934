-- child/cancel
-- Cancel was requested of these parents, or of somebody above them: it is carried on to their children from the first one on.
UPDATE surefoot_child_group SET cancel_from = 0, awaited = 0 WHERE parent IN (/*rows*/)
