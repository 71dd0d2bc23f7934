-- operator/exhausted
SELECT count(*) AS count FROM surefoot_run WHERE app = ?1 AND state = 'failed' 
    AND CASE WHEN json_valid(detail) THEN detail ->> '$.code' END = ?2
