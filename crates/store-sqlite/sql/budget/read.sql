-- budget/read
SELECT dimension, used, cap FROM surefoot_root_budget WHERE root = ?
