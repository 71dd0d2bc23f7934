-- workflow/clear_activations
UPDATE activation SET present = 0 WHERE workflow = ?
