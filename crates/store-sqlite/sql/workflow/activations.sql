-- workflow/activations
SELECT key, event, enabled FROM surefoot_activation WHERE workflow = ? AND present = 1 ORDER BY position
