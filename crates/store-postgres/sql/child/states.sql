-- child/states
SELECT parent_step AS step, state, count(*) AS count FROM surefoot.run
WHERE parent_run = $1 AND ($2::text IS NULL OR parent_step = $2)
GROUP BY parent_step, state
