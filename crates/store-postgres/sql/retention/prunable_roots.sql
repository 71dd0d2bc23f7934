-- retention/prunable_roots
SELECT root.id FROM surefoot.run AS root
WHERE root.app = $1 AND root.state = $2 AND root.created_at < $3 AND root.ended_at < $3
    AND root.parent_run IS NULL AND ($4::text IS NULL OR root.scope = $4)
    AND root.state || ' ' || coalesce(root.effect_state, '-') <> ALL($5)
    AND (
        SELECT true FROM surefoot.run AS member
        WHERE member.root = root.id AND member.parent_run IS NOT NULL
            AND member.state || ' ' || coalesce(member.effect_state, '-') = ANY($5)
        LIMIT 1
    ) IS NOT TRUE
ORDER BY root.created_at, root.id LIMIT $6
