-- task/retry
UPDATE surefoot.task SET retried = true WHERE run = ANY($1) AND state IN ('failed', 'canceled')
