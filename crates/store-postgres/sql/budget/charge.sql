-- budget/charge
-- A counter without a cap may not exist yet, and somebody else may create it at the same time.
INSERT INTO surefoot.root_budget (root, dimension, used, cap)
SELECT x.root, x.dimension, x.amount, NULL FROM unnest($1::uuid[], $2::text[], $3::bigint[])
    AS x (root, dimension, amount) ORDER BY x.root, x.dimension
ON CONFLICT (root, dimension) DO UPDATE SET used = root_budget.used + excluded.used
