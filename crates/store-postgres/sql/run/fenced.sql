-- run/fenced
SELECT generation, state FROM surefoot.run WHERE id = $1
