-- workflow/set_active
UPDATE workflow SET active = ?2 WHERE no = ?1
