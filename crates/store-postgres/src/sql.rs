//! The statements. Each is a file of its own, named like its constant, so that logs and plans can be traced to it.

macro_rules! statements {
    ($($name:ident = $path:literal),* $(,)?) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", $path, ".sql"));)*
        const ALL: &[(&str, &str)] = &[$(($path, $name)),*];
    };
}

statements! {
    AUDIT_WRITE = "audit/write",
    BUDGET_CHARGE = "budget/charge",
    BUDGET_LOCK = "budget/lock",
    BUDGET_OPEN = "budget/open",
    BUDGET_READ = "budget/read",
    CHILD_AWAIT = "child/await",
    CHILD_CANCEL = "child/cancel",
    CHILD_CANCEL_BATCH = "child/cancel_batch",
    CHILD_CANCEL_FROM = "child/cancel_from",
    CHILD_CANCEL_NEXT = "child/cancel_next",
    CHILD_CANCEL_PENDING = "child/cancel_pending",
    CHILD_GROUP = "child/group",
    CHILD_GROUP_LOCK = "child/group_lock",
    CHILD_GROUP_LOCK_IF_FREE = "child/group_lock_if_free",
    CHILD_GROUP_WRITE = "child/group_write",
    CHILD_GROUPS = "child/groups",
    CHILD_HELD = "child/held",
    CHILD_IDS = "child/ids",
    CHILD_OVER = "child/over",
    CHILD_READ = "child/read",
    CHILD_ROOM = "child/room",
    CHILD_STATES = "child/states",
    CHILD_TAKE = "child/take",
    CHILD_VERSION = "child/version",
    META_CLOCK = "meta/clock",
    META_EXISTS = "meta/exists",
    META_LOCK = "meta/lock",
    META_SCHEMA = "meta/schema",
    META_SERVER = "meta/server",
    META_SET_SCHEMA = "meta/set_schema",
    RETENTION_DELETING = "retention/deleting",
    RETENTION_IS_DOOMED = "retention/is_doomed",
    RETENTION_PLACE_SHARE = "retention/place_share",
    RUN_BY_ID = "run/by_id",
    RUN_CANCELED = "run/canceled",
    RUN_CLAIMABLE = "run/claimable",
    RUN_COMMIT_MOVES = "run/commit_moves",
    RUN_COMMIT_STEPS = "run/commit_steps",
    RUN_FENCE = "run/fence",
    RUN_FENCED = "run/fenced",
    RUN_FOOTPRINTS = "run/footprints",
    RUN_GONE = "run/gone",
    RUN_HEADS = "run/heads",
    RUN_HEADS_IF_FREE = "run/heads_if_free",
    RUN_HELD = "run/held",
    RUN_INSERT = "run/insert",
    RUN_JOURNAL = "run/journal",
    JOURNAL_APPEND = "run/journal_append",
    RUN_LOCK = "run/lock",
    RUN_LOCK_IF_FREE = "run/lock_if_free",
    RUN_MOVE = "run/move",
    RUN_OVERDUE = "run/overdue",
    RUN_PAYLOAD = "run/payload",
    RUN_PAYLOAD_WRITE = "run/payload_write",
    RUN_RENEW = "run/renew",
    RUN_RESULT = "run/result",
    RUN_RESULT_WRITE = "run/result_write",
    RUN_SIGNALED = "run/signaled",
    RUN_STEP = "run/step",
    RUN_WAITING_ON = "run/waiting_on",
    SESSION_REPORT = "session/report",
    SIGNAL_BY_KEY = "signal/by_key",
    SIGNAL_LOCK = "signal/lock",
    SIGNAL_LOCK_IF_FREE = "signal/lock_if_free",
    SIGNAL_SETTLE = "signal/settle",
    SIGNAL_SPEND = "signal/spend",
}

/// Every statement by name.
pub(crate) fn all() -> Vec<(&'static str, &'static str)> {
    ALL.to_vec()
}
