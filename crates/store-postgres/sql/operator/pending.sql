-- operator/pending
SELECT count(*) AS count, min(recorded_at) AS oldest FROM surefoot.event
WHERE app = $1 AND due_at IS NOT NULL
