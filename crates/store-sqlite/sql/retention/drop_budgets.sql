-- retention/drop_budgets
DELETE FROM surefoot_root_budget
WHERE root IN (SELECT id FROM surefoot_run WHERE no IN (SELECT value FROM json_each(?)))
