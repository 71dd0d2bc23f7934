-- operator/exhausted
SELECT count(*) AS count FROM run WHERE app = ?1 AND state = 'failed' AND detail ->> '$.code' = ?2
