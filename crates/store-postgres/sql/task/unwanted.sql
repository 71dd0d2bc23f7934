-- task/unwanted
SELECT task.key AS key FROM surefoot.task AS task LEFT JOIN surefoot.run AS run ON run.id = task.run
WHERE task.app = $1 AND task.due_at IS NOT NULL
    AND (run.id IS NULL OR run.cancel IS NOT NULL OR run.ended_at IS NOT NULL)
LIMIT $2
