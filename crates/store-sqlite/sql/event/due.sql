-- event/due
SELECT no, id, attempts FROM surefoot_event WHERE app = ?1 AND due_at <= ?2 ORDER BY due_at, no LIMIT ?3
