-- child/cancel_pending
SELECT EXISTS (SELECT FROM surefoot.child_group WHERE app = $1 AND cancel_from IS NOT NULL) AS pending
