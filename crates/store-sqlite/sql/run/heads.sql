-- run/heads
SELECT no, id, generation, revision, state, claimable_at, lease_owner, lease_length, claim_nonce,
    cancel IS NOT NULL AS canceled, effect_state IS NOT NULL AS has_effect, signal,
    CASE WHEN json_valid(resume) THEN resume ->> '$.step' END AS resume_step,
    CASE WHEN json_valid(resume) THEN resume ->> '$.wake' = 'children' ELSE 0 END AS by_children
FROM surefoot_run WHERE id IN (/*rows*/)
