-- budget/read
SELECT dimension, used, cap FROM root_budget WHERE root = ?
