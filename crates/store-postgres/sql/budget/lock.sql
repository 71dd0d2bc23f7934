-- budget/lock
SELECT root, dimension, used, cap FROM surefoot.root_budget WHERE root = ANY ($1)
ORDER BY root, dimension FOR NO KEY UPDATE
