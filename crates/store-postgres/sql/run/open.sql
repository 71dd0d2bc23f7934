-- run/open
SELECT r.id FROM unnest($2::uuid[]) AS x (id) JOIN surefoot.run AS r ON r.id = x.id
WHERE (r.app = $1 AND r.state IN ('queued', 'running', 'waiting')) IS TRUE
