-- retention/doomed
SELECT root FROM surefoot.doomed WHERE app = $1 LIMIT $2
