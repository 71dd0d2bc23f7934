-- retention/deleting
-- Until the transaction ends, no deletion of this place begins.
SELECT surefoot.deleting($1, $2, $3, $4) AS workflow
