-- workflow/forget_schedules
UPDATE surefoot.activation SET schedule = NULL WHERE workflow = $1 AND NOT present
