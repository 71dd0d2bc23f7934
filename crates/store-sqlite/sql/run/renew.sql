-- run/renew
UPDATE run SET claimable_at = ?, lease_length = ? WHERE no IN (/*rows*/)
