-- retention/is_doomed
SELECT run.no FROM run JOIN doomed ON doomed.root = run.root WHERE run.no = ?
