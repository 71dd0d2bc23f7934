-- retention/undoom
DELETE FROM surefoot_doomed WHERE root = ?
