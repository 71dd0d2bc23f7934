-- version/by_revision
SELECT no, id, authorization, plan FROM surefoot_version WHERE workflow = ? AND revision = ?
