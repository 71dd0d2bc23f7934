-- run/journal_append
INSERT INTO surefoot.journal (run, seq, count, generation, at, facts)
SELECT x.run, x.seq, x.count, x.generation, $6, x.facts
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
    AS x (run, seq, count, generation, facts)
