-- child/cancel_batch
SELECT no, parent_index FROM run
WHERE parent_run = ?1 AND parent_step = ?2 AND parent_index >= ?3 AND ended_at IS NULL
ORDER BY parent_index LIMIT ?4
