-- retention/place_activations
DELETE FROM surefoot.activation WHERE workflow IN (
    SELECT no FROM surefoot.workflow WHERE app = $1 AND scope = $2 AND ($3 = '' OR key = $3)
)
