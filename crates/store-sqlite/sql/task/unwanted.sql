-- task/unwanted
SELECT task.no AS no FROM surefoot_task AS task LEFT JOIN surefoot_run AS run ON run.id = task.run
WHERE task.app = ? AND task.due_at IS NOT NULL
    AND (run.id IS NULL OR run.cancel IS NOT NULL OR run.ended_at IS NOT NULL)
LIMIT ?
