-- retention/mark_emptied
UPDATE event SET emptied_at = ?2
WHERE no IN (SELECT value FROM json_each(?1)) AND emptied_at IS NULL
