-- operator/half_deleted
SELECT count(*) AS count FROM surefoot_doomed WHERE app = ?1
