-- run/fenced
SELECT generation, state FROM run WHERE id = ?
