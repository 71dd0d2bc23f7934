-- retention/mark_emptied
-- What was found on a reading connection may have been redriven since: then it is not done with any more.
UPDATE surefoot_event SET emptied_at = ?2
WHERE no IN (SELECT value FROM json_each(?1)) AND emptied_at IS NULL AND due_at IS NULL
    AND ifnull(ended_at, recorded_at) <= ?3
RETURNING no
