-- retention/place_activations
DELETE FROM surefoot_activation WHERE workflow IN (
    SELECT no FROM surefoot_workflow WHERE app = ?1 AND scope = ?2 AND (?3 = '' OR key = ?3)
)
