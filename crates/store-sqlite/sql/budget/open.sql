-- budget/open
INSERT INTO surefoot_root_budget (root, dimension, used, cap)
SELECT ?1, caps.key, 0, caps.value FROM surefoot_version AS version, json_each(version.budget) AS caps WHERE version.id = ?2
