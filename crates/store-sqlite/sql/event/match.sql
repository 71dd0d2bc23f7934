-- event/match
SELECT workflow.key AS workflow, activation.key AS activation, activation.trigger_kind,
    activation.authorization, version.id AS version, version.footprint_hash AS footprint
FROM surefoot_activation AS activation
JOIN surefoot_workflow AS workflow ON workflow.no = activation.workflow
JOIN surefoot_version AS version ON version.no = workflow.active
WHERE activation.app = ?1 AND activation.scope = ?2 AND activation.event = ?3
    AND activation.enabled = 1 AND activation.present = 1
    AND (?4 IS NULL OR workflow.key = ?4)
ORDER BY workflow.key, activation.position
