-- retention/mark_emptied
UPDATE surefoot.event SET emptied_at = $2 WHERE id = ANY($1) AND (emptied_at IS NULL) IS TRUE
