-- task/unsay
-- What would wake the steps of a run before their tasks have ended again.
DELETE FROM surefoot_signal WHERE app = ?2 AND app_wide = 1 AND scope = '' AND kind = ?3
    AND key IN (SELECT key FROM surefoot_task WHERE run = ?1 AND retried = 1)
