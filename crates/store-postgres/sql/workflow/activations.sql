-- workflow/activations
SELECT workflow, key, event, enabled FROM surefoot.activation
WHERE workflow = ANY($1) AND present ORDER BY workflow, position
