-- operator/tagged
SELECT event.runs FROM surefoot_event AS event, json_each(event.tags) AS tag
WHERE event.app = ?1 AND event.tags IS NOT NULL AND tag.value = ?2 LIMIT ?3
