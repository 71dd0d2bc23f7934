-- budget/open
INSERT INTO surefoot.root_budget (root, dimension, used, cap)
SELECT x.root, caps.key, 0, caps.value::bigint
FROM unnest($1::uuid[], $2::uuid[]) AS x (root, version)
JOIN surefoot.version ON version.id = x.version
CROSS JOIN LATERAL json_each_text(version.budget::json) AS caps
