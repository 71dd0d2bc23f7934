-- child/states
SELECT parent_step AS step, state, count(*) AS count FROM surefoot_run
WHERE parent_run = ?1 AND (?2 IS NULL OR parent_step = ?2)
GROUP BY parent_step, state
