-- version/insert
INSERT INTO surefoot.version (
    id, workflow, revision, plan_hash, footprint_hash, created_at, author, "authorization",
    footprint, budget, plan, source
) VALUES (
    $1, $2, (SELECT coalesce(max(revision), 0) + 1 FROM surefoot.version WHERE workflow = $2),
    $3, $4, $5, $6, $7, $8, $9, $10, $11
) RETURNING revision
