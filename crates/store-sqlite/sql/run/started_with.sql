-- run/started_with
-- What started the runs of a claim, of those with no more than 32 KiB. A child has its data only: the rest is its root's.
SELECT run.no, own.data, shared.context, shared.actor, shared.trace
FROM surefoot_run AS run JOIN surefoot_run_payload AS own ON own.run = run.no
LEFT JOIN surefoot_run AS root ON root.id = run.root
LEFT JOIN surefoot_run_payload AS shared ON shared.run = root.no
WHERE run.no IN (/*rows*/) AND octet_length(own.data) + coalesce(octet_length(shared.context), 0) <= 32768
