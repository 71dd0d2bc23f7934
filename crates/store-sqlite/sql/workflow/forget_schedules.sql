-- workflow/forget_schedules
UPDATE activation SET schedule = NULL WHERE workflow = ? AND present = 0
