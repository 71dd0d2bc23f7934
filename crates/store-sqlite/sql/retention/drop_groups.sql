-- retention/drop_groups
DELETE FROM surefoot_child_group
WHERE parent IN (SELECT id FROM surefoot_run WHERE no IN (SELECT value FROM json_each(?)))
