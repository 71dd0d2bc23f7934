-- workflow/activations
SELECT key, event, enabled FROM activation WHERE workflow = ? AND present = 1 ORDER BY position
