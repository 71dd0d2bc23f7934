-- retention/tree_doomed
SELECT root FROM doomed WHERE root = ?
