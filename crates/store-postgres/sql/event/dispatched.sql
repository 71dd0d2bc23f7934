-- event/dispatched
UPDATE surefoot.event SET status = 'dispatched', runs = x.runs, due_at = NULL, ended_at = $4
FROM (
    SELECT event, array_agg(run ORDER BY ord) AS runs
    FROM unnest($2::uuid[], $3::uuid[]) WITH ORDINALITY AS started (event, run, ord) GROUP BY event
) AS x
WHERE event.id = ANY($1) AND event.id = x.event
