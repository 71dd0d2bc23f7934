-- task/again
UPDATE surefoot_task SET state = 'queued', due_at = ?1, failures = failures - ?5
WHERE app = ?2 AND key = ?3 AND attempts = ?4 AND state = 'running'
