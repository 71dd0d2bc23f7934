-- event/match
-- What events would match, and the catalog that says so: there is at least one row, for the catalog.
SELECT one.catalog, found.* FROM (
    SELECT value AS catalog FROM surefoot.meta WHERE key = 'catalog'
) AS one LEFT JOIN (
    SELECT x.ord, workflow.key AS workflow, activation.key AS activation, activation.trigger_kind,
        activation."authorization", version.id AS version, version.footprint_hash AS footprint,
        version.budget <> '{}' AS has_budget, activation.position
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
        WITH ORDINALITY AS x (app, scope, kind, target, ord)
    JOIN surefoot.activation
        ON activation.app = x.app AND activation.scope = x.scope AND activation.event = x.kind
    JOIN surefoot.workflow ON workflow.no = activation.workflow
    JOIN surefoot.version ON version.id = workflow.active
    WHERE activation.enabled AND activation.present AND (x.target IS NULL OR workflow.key = x.target)
) AS found ON true
ORDER BY found.ord, found.workflow COLLATE "C", found.position
