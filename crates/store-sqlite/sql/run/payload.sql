-- run/payload
-- A child has its data only: the rest is its root's.
SELECT own.data, shared.context, shared.actor, shared.trace
FROM surefoot_run AS run JOIN surefoot_run_payload AS own ON own.run = run.no
LEFT JOIN surefoot_run AS root ON root.id = run.root
LEFT JOIN surefoot_run_payload AS shared ON shared.run = root.no
WHERE run.no = ?
