-- retention/doomed
SELECT root FROM doomed WHERE app = ?1 LIMIT ?2
