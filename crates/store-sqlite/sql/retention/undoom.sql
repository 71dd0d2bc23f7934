-- retention/undoom
DELETE FROM doomed WHERE root = ?
