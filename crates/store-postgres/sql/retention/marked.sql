-- retention/marked
SELECT forced, actor, reason, phase, cursor FROM surefoot.deletion
WHERE app = $1 AND scope = $2 AND workflow = $3
