-- task/retry
UPDATE surefoot_task SET retried = 1 WHERE run = ?1 AND state IN ('failed', 'canceled')
