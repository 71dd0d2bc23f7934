-- retention/drop_groups
DELETE FROM surefoot.child_group WHERE parent = ANY($1)
