-- retention/tree_doomed
SELECT root FROM surefoot_doomed WHERE root = ?
