-- retention/undoom
DELETE FROM surefoot.doomed WHERE root = $1
