-- budget/open
-- The caps of their versions, for new root runs. A child charges its root.
WITH x (id) AS (VALUES /*rows*/)
INSERT INTO surefoot_root_budget (root, dimension, used, cap)
SELECT run.id, caps.key, 0, caps.value
FROM x CROSS JOIN surefoot_run AS run ON run.id = x.id
CROSS JOIN surefoot_version AS version ON version.id = run.version
CROSS JOIN json_each(version.budget) AS caps
WHERE run.root = run.id
