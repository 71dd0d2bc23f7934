-- version/by_revision
SELECT no, id, authorization, plan FROM version WHERE workflow = ? AND revision = ?
