-- workflow/schedules
SELECT workflow.scope, workflow.key AS workflow, activation.key, activation.schedule, activation.since,
    activation.enabled
FROM surefoot.activation JOIN surefoot.workflow ON workflow.no = activation.workflow
WHERE activation.app = $1 AND activation.schedule IS NOT NULL
ORDER BY workflow.scope COLLATE "C", workflow.key COLLATE "C", activation.key COLLATE "C"
