-- retention/tree_doomed
SELECT root FROM surefoot.doomed WHERE root = $1
