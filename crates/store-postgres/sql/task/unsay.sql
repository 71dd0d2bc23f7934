-- task/unsay
-- What would wake the steps of runs before their tasks have ended again.
DELETE FROM surefoot.signal USING surefoot.task
WHERE task.run = ANY($1) AND task.retried AND signal.app = task.app AND signal.app_wide AND signal.scope = ''
    AND signal.kind = $2 AND signal.key = task.key
