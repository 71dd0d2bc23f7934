-- workflow/clear_activations
UPDATE surefoot.activation SET present = false WHERE workflow = $1
