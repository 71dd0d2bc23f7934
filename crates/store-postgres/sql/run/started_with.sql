-- run/started_with
-- What started the runs of a claim, of those with no more than so many bytes. A child has its data only: the rest is its
-- root's.
SELECT run.id, own.data, shared.context, shared.actor, shared.trace
FROM unnest($1::uuid[], $2::uuid[]) AS run (id, root)
JOIN surefoot.run_payload AS own ON own.run = run.id
LEFT JOIN surefoot.run_payload AS shared ON shared.run = run.root
WHERE octet_length(own.data) + coalesce(octet_length(shared.context), 0) <= $3
