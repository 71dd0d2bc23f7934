-- retention/redrive
UPDATE surefoot_event SET status = ?2, attempts = 0, error = NULL, due_at = ?3, ended_at = ?4 WHERE no = ?1
