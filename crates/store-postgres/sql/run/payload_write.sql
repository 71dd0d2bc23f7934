-- run/payload_write
INSERT INTO surefoot.run_payload (run, data, context, "authorization", actor, trace)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
