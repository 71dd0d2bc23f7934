-- operator/sessions
SELECT id, name, mode, offers, tree, slots, busy, stuck, seen_at FROM surefoot.worker_session
WHERE app = $1 AND NOT ended ORDER BY seen_at DESC, id DESC
