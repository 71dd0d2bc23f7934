-- run/by_no
SELECT run.* FROM surefoot_run AS run WHERE no IN (/*rows*/)
