-- run/journal_page
SELECT seq, generation, at, facts FROM surefoot_journal
WHERE run = ?1
    AND seq >= coalesce((SELECT max(seq) FROM surefoot_journal WHERE run = ?1 AND seq <= ?2), 0)
    AND seq + count > ?2 AND seq < ?3
ORDER BY seq LIMIT ?4
