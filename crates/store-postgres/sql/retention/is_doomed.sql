-- retention/is_doomed
SELECT run.id FROM surefoot.run JOIN surefoot.doomed ON doomed.root = run.root WHERE run.id = $1
