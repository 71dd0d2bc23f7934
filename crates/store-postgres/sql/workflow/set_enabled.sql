-- workflow/set_enabled
UPDATE surefoot.activation SET enabled = $3,
    -- What passed while a schedule was off is not its own.
    since = CASE WHEN $3 AND schedule IS NOT NULL THEN $4 ELSE since END
WHERE workflow = $1 AND ($2::text IS NULL OR key = $2) AND enabled <> $3
RETURNING key
