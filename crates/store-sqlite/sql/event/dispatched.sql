-- event/dispatched
UPDATE surefoot_event SET status = 'dispatched', runs = ?2, due_at = NULL, ended_at = ?3 WHERE no = ?1
