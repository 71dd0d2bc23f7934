-- retention/place_activations
DELETE FROM activation WHERE workflow IN (
    SELECT no FROM workflow WHERE app = ?1 AND scope = ?2 AND (?3 = '' OR key = ?3)
)
