-- run/payload
-- A child has its data only: the rest is its root's.
SELECT own.data, shared.context, shared.actor, shared.trace
FROM surefoot.run_payload AS own LEFT JOIN surefoot.run_payload AS shared ON shared.run = $2
WHERE own.run = $1
