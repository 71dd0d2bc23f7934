-- workflow/schedules
SELECT workflow.scope, workflow.key AS workflow, activation.key, activation.schedule, activation.since,
    activation.enabled
FROM surefoot_activation AS activation JOIN surefoot_workflow AS workflow ON workflow.no = activation.workflow
WHERE activation.app = ? AND activation.schedule IS NOT NULL
ORDER BY workflow.scope, workflow.key, activation.key
