-- retention/drop_groups
DELETE FROM child_group
WHERE parent IN (SELECT id FROM run WHERE no IN (SELECT value FROM json_each(?)))
