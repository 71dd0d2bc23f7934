-- task/cancel
UPDATE surefoot_task SET state = 'canceled', due_at = NULL, ended_at = ?1
WHERE no IN (SELECT value FROM json_each(?2)) AND due_at IS NOT NULL
