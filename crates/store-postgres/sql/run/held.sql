-- run/held
-- Which of these leases their session has.
SELECT r.id FROM unnest($1::uuid[], $2::bigint[]) AS x (id, generation)
JOIN surefoot.run AS r ON r.id = x.id AND r.generation = x.generation
WHERE (r.lease_owner = $3) IS TRUE
