-- run/journal
SELECT seq, generation, at, facts FROM journal
WHERE run = ?1
    AND seq >= coalesce((SELECT max(seq) FROM journal WHERE run = ?1 AND seq <= ?2), 0)
    AND seq + count > ?2 AND seq < ?3
ORDER BY seq
