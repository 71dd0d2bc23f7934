-- retention/marked_mine
-- Two passes over one place take turns.
SELECT forced, actor, reason, phase, cursor FROM surefoot.deletion
WHERE app = $1 AND scope = $2 AND workflow = $3 FOR UPDATE
