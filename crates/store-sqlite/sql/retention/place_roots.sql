-- retention/place_roots
SELECT root.id
FROM surefoot_workflow AS workflow
JOIN surefoot_version AS version ON version.workflow = workflow.no
JOIN surefoot_run AS root ON root.version = version.id
WHERE workflow.app = ?1 AND workflow.scope = ?2 AND (?3 = '' OR workflow.key = ?3)
    AND root.parent_run IS NULL
    AND root.state || ' ' || ifnull(root.effect_state, '-') NOT IN (SELECT value FROM json_each(?4))
    AND NOT EXISTS (
        SELECT 1 FROM surefoot_run AS member WHERE member.root = root.id AND member.parent_run IS NOT NULL
            AND member.state || ' ' || ifnull(member.effect_state, '-')
                IN (SELECT value FROM json_each(?4))
    )
LIMIT ?5
