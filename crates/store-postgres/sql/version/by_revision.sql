-- version/by_revision
SELECT id, "authorization", plan FROM surefoot.version WHERE workflow = $1 AND revision = $2
