-- retention/drop_budgets
DELETE FROM surefoot.root_budget WHERE root = ANY($1)
