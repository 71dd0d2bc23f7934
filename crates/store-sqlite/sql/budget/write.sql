-- budget/write
INSERT INTO surefoot_root_budget (root, dimension, used, cap) VALUES (?1, ?2, ?3, NULL)
ON CONFLICT (root, dimension) DO UPDATE SET used = excluded.used
