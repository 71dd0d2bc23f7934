-- run/renew
UPDATE surefoot_run SET claimable_at = ?, lease_length = ? WHERE no IN (/*rows*/)
