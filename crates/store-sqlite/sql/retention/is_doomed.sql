-- retention/is_doomed
SELECT run.no FROM surefoot_run AS run JOIN surefoot_doomed AS doomed ON doomed.root = run.root WHERE run.no = ?
