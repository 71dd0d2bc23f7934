-- workflow/has_activation
SELECT no FROM activation WHERE workflow = ?1 AND key = ?2
