-- workflow/set_active
UPDATE surefoot.workflow SET active = $2 WHERE no = $1
