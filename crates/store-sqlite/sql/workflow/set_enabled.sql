-- workflow/set_enabled
UPDATE activation SET enabled = ?3
WHERE workflow = ?1 AND (?2 IS NULL OR key = ?2) AND enabled <> ?3
RETURNING key
