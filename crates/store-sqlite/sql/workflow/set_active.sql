-- workflow/set_active
UPDATE surefoot_workflow SET active = ?2 WHERE no = ?1
