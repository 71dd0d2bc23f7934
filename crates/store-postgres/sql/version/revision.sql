-- version/revision
SELECT revision FROM surefoot.version WHERE id = $1
