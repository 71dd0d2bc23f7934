-- workflow/clear_activations
UPDATE surefoot_activation SET present = 0 WHERE workflow = ?
