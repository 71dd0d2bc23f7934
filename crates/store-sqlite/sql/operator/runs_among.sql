-- operator/runs_among
SELECT run.*, version.revision AS version_revision
FROM surefoot_run AS run JOIN surefoot_version AS version ON version.id = run.version
WHERE run.id IN (SELECT unhex(value) FROM json_each(?1)) AND (?2 IS NULL OR run.app = ?2)
    AND (run.created_at, run.id) < (?3, ?4)
    AND (?5 IS NULL OR run.scope = ?5)
    AND (?6 IS NULL OR run.workflow = ?6)
    AND (?7 IS NULL OR run.mode = ?7)
    AND (?8 IS NULL OR run.created_at >= ?8)
    AND (?9 IS NULL OR run.event = ?9)
    AND (?11 IS NULL OR run.state IN (SELECT value FROM json_each(?11)))
ORDER BY run.created_at DESC, run.id DESC LIMIT ?10
