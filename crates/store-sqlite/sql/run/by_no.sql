-- run/by_no
SELECT run.* FROM run WHERE no IN (/*rows*/)
