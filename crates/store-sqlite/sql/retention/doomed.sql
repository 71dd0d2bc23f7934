-- retention/doomed
SELECT root FROM surefoot_doomed WHERE app = ?1 LIMIT ?2
