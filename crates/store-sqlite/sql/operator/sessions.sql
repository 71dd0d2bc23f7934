-- operator/sessions
SELECT id, name, mode, offers, tree, slots, busy, stuck, seen_at FROM surefoot_worker_session
WHERE app = ? AND ended = 0 ORDER BY seen_at DESC, id DESC
