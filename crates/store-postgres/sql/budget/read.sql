-- budget/read
SELECT root, dimension, used, cap FROM surefoot.root_budget WHERE root = ANY ($1)
