-- operator/count_placed
SELECT count(*) AS count FROM (
    SELECT FROM surefoot.run WHERE version IN (
        SELECT version.id FROM surefoot.version JOIN surefoot.workflow ON workflow.no = version.workflow
        WHERE workflow.app = $1 AND ($2::text IS NULL OR workflow.scope = $2)
            AND ($3::text IS NULL OR workflow.key = $3)
    ) LIMIT $4
) AS placed
