-- budget/open
INSERT INTO root_budget (root, dimension, used, cap)
SELECT ?1, caps.key, 0, caps.value FROM version, json_each(version.budget) AS caps WHERE version.id = ?2
