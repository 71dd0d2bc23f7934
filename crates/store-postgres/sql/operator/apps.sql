-- operator/apps
WITH RECURSIVE
    of_workflow (app) AS (
        SELECT min(app) FROM surefoot.workflow
        UNION ALL
        SELECT (SELECT min(app) FROM surefoot.workflow WHERE app > of_workflow.app)
        FROM of_workflow WHERE of_workflow.app IS NOT NULL
    ),
    of_event (app) AS (
        SELECT min(app) FROM surefoot.event
        UNION ALL
        SELECT (SELECT min(app) FROM surefoot.event WHERE app > of_event.app)
        FROM of_event WHERE of_event.app IS NOT NULL
    ),
    of_signal (app) AS (
        SELECT min(app) FROM surefoot.signal
        UNION ALL
        SELECT (SELECT min(app) FROM surefoot.signal WHERE app > of_signal.app)
        FROM of_signal WHERE of_signal.app IS NOT NULL
    ),
    of_audit (app) AS (
        SELECT min(app) FROM surefoot.audit
        UNION ALL
        SELECT (SELECT min(app) FROM surefoot.audit WHERE app > of_audit.app)
        FROM of_audit WHERE of_audit.app IS NOT NULL
    ),
    known (app) AS (
        SELECT app FROM of_workflow WHERE app IS NOT NULL
        UNION SELECT app FROM of_event WHERE app IS NOT NULL
        UNION SELECT app FROM of_signal WHERE app IS NOT NULL
        UNION SELECT app FROM of_audit WHERE app IS NOT NULL
        UNION SELECT app FROM surefoot.worker_session
    )
SELECT app FROM known ORDER BY app COLLATE "C"
