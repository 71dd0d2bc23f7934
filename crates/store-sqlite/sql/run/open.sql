-- run/open
SELECT id FROM surefoot_run WHERE id IN (/*rows*/) AND app = ? AND state IN ('queued', 'running', 'waiting')
