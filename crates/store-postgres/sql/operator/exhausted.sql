-- operator/exhausted
-- A quote inside of a string is escaped, so only a member can read like this; a row that is no JSON is passed over.
SELECT count(*) AS count FROM surefoot.run WHERE app = $1 AND state = 'failed'
    AND position('"code":"' || $2 || '"' IN detail) > 0
