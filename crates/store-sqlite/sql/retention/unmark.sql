-- retention/unmark
DELETE FROM deletion WHERE app = ?1 AND scope = ?2 AND (?3 = '' OR workflow = ?3)
