-- operator/half_deleted
SELECT count(*) AS count FROM surefoot.doomed WHERE app = $1
