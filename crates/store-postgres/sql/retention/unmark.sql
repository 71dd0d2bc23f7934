-- retention/unmark
DELETE FROM surefoot.deletion WHERE app = $1 AND scope = $2 AND ($3 = '' OR workflow = $3)
