-- workflow/forget_schedules
UPDATE surefoot_activation SET schedule = NULL WHERE workflow = ? AND present = 0
