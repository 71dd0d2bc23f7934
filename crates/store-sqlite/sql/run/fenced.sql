-- run/fenced
SELECT generation, state FROM surefoot_run WHERE id = ?
