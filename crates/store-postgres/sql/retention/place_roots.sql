-- retention/place_roots
SELECT root.id
FROM surefoot.workflow
JOIN surefoot.version ON version.workflow = workflow.no
JOIN surefoot.run AS root ON root.version = version.id
WHERE workflow.app = $1 AND workflow.scope = $2 AND ($3 = '' OR workflow.key = $3)
    AND root.parent_run IS NULL
    AND root.state || ' ' || coalesce(root.effect_state, '-') <> ALL($4)
    AND (
        SELECT true FROM surefoot.run AS member
        WHERE member.root = root.id AND member.parent_run IS NOT NULL
            AND member.state || ' ' || coalesce(member.effect_state, '-') = ANY($4)
        LIMIT 1
    ) IS NOT TRUE
LIMIT $5
