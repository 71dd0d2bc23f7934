-- event/dispatch_failed
UPDATE surefoot_event SET status = ?2, attempts = ?3, due_at = ?4, ended_at = ?5, error = ?6 WHERE no = ?1
