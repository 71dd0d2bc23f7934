-- retention/prunable_roots
SELECT id FROM surefoot_run AS root
WHERE app = ?1 AND state = ?2 AND created_at < ?3 AND ended_at < ?3 AND parent_run IS NULL
    AND (?4 IS NULL OR scope = ?4)
    AND state || ' ' || ifnull(effect_state, '-') NOT IN (SELECT value FROM json_each(?5))
    AND NOT EXISTS (
        SELECT 1 FROM surefoot_run AS member WHERE member.root = root.id AND member.parent_run IS NOT NULL
            AND member.state || ' ' || ifnull(member.effect_state, '-')
                IN (SELECT value FROM json_each(?5))
    )
ORDER BY created_at, id LIMIT ?6
