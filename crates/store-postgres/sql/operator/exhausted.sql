-- operator/exhausted
-- A quote inside of a string is escaped, so only a member can read like this; a row that is no JSON is passed over. As
-- the index has it, word by word.
SELECT count(*) AS count FROM surefoot.run WHERE app = $1 AND state = 'failed'
    AND position('"code":"RETRY_EXHAUSTED"' IN detail) > 0
