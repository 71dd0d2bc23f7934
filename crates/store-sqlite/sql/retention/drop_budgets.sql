-- retention/drop_budgets
DELETE FROM root_budget
WHERE root IN (SELECT id FROM run WHERE no IN (SELECT value FROM json_each(?)))
