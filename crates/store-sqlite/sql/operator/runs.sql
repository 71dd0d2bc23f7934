-- operator/runs
SELECT run.*, version.revision AS version_revision
FROM surefoot_run AS run JOIN surefoot_version AS version ON version.id = run.version
WHERE run.app = ?1 AND ?2 IS NULL AND (run.created_at, run.id) < (?3, ?4)
    AND (?11 OR run.parent_run IS NULL)
    AND (?5 IS NULL OR run.scope = ?5)
    AND (?6 IS NULL OR run.workflow = ?6)
    AND (?7 IS NULL OR run.mode = ?7)
    AND (?8 IS NULL OR run.created_at >= ?8)
    AND (?9 IS NULL OR run.event = ?9)
    AND (?12 IS NULL OR EXISTS (
        SELECT 1 FROM surefoot_event AS event, json_each(event.tags) AS tag
        WHERE event.id = run.event AND tag.value = ?12))
ORDER BY run.created_at DESC, run.id DESC LIMIT ?10
