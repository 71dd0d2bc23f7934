//! The statements. Each is a file of its own, named like its constant, so that logs and plans can be traced to it.

use std::fmt::Write as _;
use std::sync::LazyLock;

use sqlx::Sqlite;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;

pub(crate) type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

/// How many rows the texts of a multi-row statement have: few texts, so that each stays prepared.
const SIZES: [usize; 7] = [1, 2, 4, 8, 16, 32, ROWS_MAX];
/// The most rows of one statement.
pub(crate) const ROWS_MAX: usize = 64;

/// A statement with a list of rows, in each of the sizes. Rows that are too many are left blank, and such a row neither
/// matches nor writes anything: a message to the connection costs more than they do.
#[derive(Debug)]
pub(crate) struct Rows {
    texts: [String; SIZES.len()],
    columns: usize,
}

impl Rows {
    fn new(template: &str, row: &str) -> Self {
        let texts = SIZES.map(|size| {
            let mut rows = String::new();
            for index in 0..size {
                let comma = if index == 0 { "" } else { ", " };
                let _ = write!(rows, "{comma}{row}");
            }
            template.replace("/*rows*/", &rows)
        });
        Self { texts, columns: row.matches('?').count() }
    }

    /// Several statements as one, so that they are one message to the connection.
    fn together(parts: &[&Self]) -> Self {
        let texts = SIZES.map(|size| {
            let texts: Vec<&str> = parts.iter().map(|part| part.text(size)).collect();
            texts.join(";\n")
        });
        Self { texts, columns: 0 }
    }

    /// The text for so many rows, at most [`ROWS_MAX`].
    pub(crate) fn text(&self, rows: usize) -> &str {
        let fitting = SIZES.iter().zip(&self.texts).find(|(size, _)| **size >= rows);
        fitting.map_or("", |(_, text)| text)
    }

    /// Leaves the rows blank that the text for so many has besides.
    pub(crate) fn blank<'q>(&self, mut query: Statement<'q>, rows: usize) -> Statement<'q> {
        let size = SIZES.into_iter().find(|size| *size >= rows).unwrap_or(rows);
        for _ in 0..(size - rows) * self.columns {
            query = query.bind(None::<i64>);
        }
        query
    }
}

/// Cuts a list into what fits into one statement each.
pub(crate) fn pieces<T>(list: &[T]) -> std::slice::Chunks<'_, T> {
    list.chunks(ROWS_MAX)
}

macro_rules! statements {
    ($($name:ident = $path:literal),* $(,)?) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", $path, ".sql"));)*
        const SINGLE: &[(&str, &str)] = &[$(($path, $name)),*];
    };
}

macro_rules! row_statements {
    ($($name:ident = $path:literal, $row:expr),* $(,)?) => {
        $(pub(crate) static $name: LazyLock<Rows> =
            LazyLock::new(|| Rows::new(include_str!(concat!("../sql/", $path, ".sql")), $row));)*
        fn many() -> Vec<(&'static str, &'static Rows)> {
            vec![$(($path, &*$name)),*]
        }
    };
}

statements! {
    CHILD_GROUP = "child/group",
    CHILD_GROUP_WRITE = "child/group_write",
    CHILD_IDS = "child/ids",
    CHILD_VERSION = "child/version",
    CHILD_HELD = "child/held",
    CHILD_AWAIT = "child/await",
    CHILD_TAKE = "child/take",
    CHILD_CANCEL_NEXT = "child/cancel_next",
    CHILD_CANCEL_BATCH = "child/cancel_batch",
    CHILD_CANCEL_FROM = "child/cancel_from",
    CHILD_OVER = "child/over",
    CHILD_READ = "child/read",
    CHILD_GROUPS = "child/groups",
    CHILD_STATES = "child/states",
    META_HEADER = "meta/header",
    META_TABLES = "meta/tables",
    META_OBJECTS = "meta/objects",
    META_SCHEMA = "meta/schema",
    META_SET_SCHEMA = "meta/set_schema",
    META_DATA_VERSION = "meta/data_version",
    WORKFLOW_ENSURE = "workflow/ensure",
    WORKFLOW_BY_KEY = "workflow/by_key",
    WORKFLOW_LIST = "workflow/list",
    WORKFLOW_ACTIVATIONS = "workflow/activations",
    WORKFLOW_SET_ENABLED = "workflow/set_enabled",
    WORKFLOW_HAS_ACTIVATION = "workflow/has_activation",
    WORKFLOW_SET_ACTIVE = "workflow/set_active",
    WORKFLOW_CLEAR_ACTIVATIONS = "workflow/clear_activations",
    WORKFLOW_WRITE_ACTIVATION = "workflow/write_activation",
    WORKFLOW_FORGET_SCHEDULES = "workflow/forget_schedules",
    WORKFLOW_SCHEDULES = "workflow/schedules",
    VERSION_INSERT = "version/insert",
    VERSION_BY_ID = "version/by_id",
    VERSION_BY_REVISION = "version/by_revision",
    VERSION_LIST = "version/list",
    EVENT_ORIGINAL = "event/original",
    EVENT_MATCH = "event/match",
    EVENT_DELIVERY_WRITE = "event/delivery_write",
    EVENT_DUE = "event/due",
    EVENT_TO_DISPATCH = "event/to_dispatch",
    EVENT_DELIVERIES = "event/deliveries",
    EVENT_DISPATCHED = "event/dispatched",
    EVENT_DISPATCH_FAILED = "event/dispatch_failed",
    BUDGET_READ = "budget/read",
    BUDGET_WRITE = "budget/write",
    SIGNAL_INSERT = "signal/insert",
    SIGNAL_BY_KEY = "signal/by_key",
    SIGNAL_MORE = "signal/more",
    SIGNAL_SETTLE = "signal/settle",
    SIGNAL_SPEND = "signal/spend",
    RUN_BY_ID = "run/by_id",
    RUN_PAYLOAD = "run/payload",
    RUN_RESULT = "run/result",
    RUN_JOURNAL = "run/journal",
    RUN_JOURNAL_PAGE = "run/journal_page",
    RUN_CLAIMABLE = "run/claimable",
    RUN_CLAIMED = "run/claimed",
    RUN_OVERDUE = "run/overdue",
    RUN_GONE = "run/gone",
    RUN_SIGNALED = "run/signaled",
    RUN_WAITING_ON = "run/waiting_on",
    RUN_FOOTPRINTS = "run/footprints",
    RUN_FENCE = "run/fence",
    RUN_FENCED = "run/fenced",
    SESSION_REPORT = "session/report",
    AUDIT_WRITE = "audit/write",
    OPERATOR_APPS = "operator/apps",
    OPERATOR_RUNS = "operator/runs",
    OPERATOR_RUNS_AMONG = "operator/runs_among",
    OPERATOR_RUNS_IN_STATE = "operator/runs_in_state",
    OPERATOR_TAGGED = "operator/tagged",
    OPERATOR_TIMELINE = "operator/timeline",
    OPERATOR_CHILDREN = "operator/children",
    OPERATOR_EFFECTS = "operator/effects",
    OPERATOR_EVENTS = "operator/events",
    OPERATOR_EVENTS_EMPTIED = "operator/events_emptied",
    OPERATOR_EVENTS_OF_TYPE = "operator/events_of_type",
    OPERATOR_EVENT = "operator/event",
    OPERATOR_SIGNALS = "operator/signals",
    OPERATOR_SESSIONS = "operator/sessions",
    OPERATOR_COUNT_RUNS = "operator/count_runs",
    OPERATOR_COUNT_EVENTS = "operator/count_events",
    OPERATOR_DELETING = "operator/deleting",
    OPERATOR_DUE = "operator/due",
    OPERATOR_UNSETTLED = "operator/unsettled",
    OPERATOR_EXHAUSTED = "operator/exhausted",
    OPERATOR_HALF_DELETED = "operator/half_deleted",
    OPERATOR_PENDING = "operator/pending",
    OPERATOR_AUDIT = "operator/audit",
    RETENTION_ADVANCE = "retention/advance",
    RETENTION_BARE_AUDIT = "retention/bare_audit",
    RETENTION_PLACE_AUDIT = "retention/place_audit",
    RETENTION_COUNT_DELIVERIES = "retention/count_deliveries",
    RETENTION_DELETING = "retention/deleting",
    RETENTION_DOOM = "retention/doom",
    RETENTION_DOOMED = "retention/doomed",
    RETENTION_DROP_BUDGETS = "retention/drop_budgets",
    RETENTION_DROP_DELIVERIES = "retention/drop_deliveries",
    RETENTION_DROP_EVENT_PAYLOADS = "retention/drop_event_payloads",
    RETENTION_DROP_EVENTS = "retention/drop_events",
    RETENTION_DROP_GONE_DELIVERIES = "retention/drop_gone_deliveries",
    RETENTION_DROP_GROUPS = "retention/drop_groups",
    RETENTION_DROP_JOURNALS = "retention/drop_journals",
    RETENTION_DROP_RESULTS = "retention/drop_results",
    RETENTION_DROP_RUN_PAYLOADS = "retention/drop_run_payloads",
    TASK_OPEN = "task/open",
    TASK_BY_KEY = "task/by_key",
    TASK_KNOWN = "task/known",
    TASK_RETRY = "task/retry",
    TASK_UNSAY = "task/unsay",
    TASK_DUE = "task/due",
    TASK_CLAIM = "task/claim",
    TASK_KEEP = "task/keep",
    TASK_END = "task/end",
    TASK_AGAIN = "task/again",
    TASK_UNWANTED = "task/unwanted",
    TASK_CANCEL = "task/cancel",
    RETENTION_DROP_TASKS = "retention/drop_tasks",
    RETENTION_DROP_RUNS = "retention/drop_runs",
    RETENTION_EVENT = "retention/event",
    RETENTION_EVENTS_OLD = "retention/events_old",
    RETENTION_EVENTS_UNMATCHED = "retention/events_unmatched",
    RETENTION_IS_DOOMED = "retention/is_doomed",
    RETENTION_MARK = "retention/mark",
    RETENTION_MARK_EMPTIED = "retention/mark_emptied",
    RETENTION_MARKED = "retention/marked",
    RETENTION_PLACE_ACTIVATIONS = "retention/place_activations",
    RETENTION_PLACE_DOOMED = "retention/place_doomed",
    RETENTION_PLACE_ENDING = "retention/place_ending",
    RETENTION_PLACE_EVENTS = "retention/place_events",
    RETENTION_PLACE_EXISTS = "retention/place_exists",
    RETENTION_PLACE_LEFT = "retention/place_left",
    RETENTION_PLACE_RETIRE = "retention/place_retire",
    RETENTION_PLACE_ROOTS = "retention/place_roots",
    RETENTION_PLACE_SHARED = "retention/place_shared",
    RETENTION_PLACE_SIGNALS = "retention/place_signals",
    RETENTION_PLACE_UNCANCELED = "retention/place_uncanceled",
    RETENTION_PLACE_UNEXPLAINED = "retention/place_unexplained",
    RETENTION_PLACE_VERSIONS = "retention/place_versions",
    RETENTION_PLACE_WORKFLOWS = "retention/place_workflows",
    RETENTION_PRUNABLE_ROOTS = "retention/prunable_roots",
    RETENTION_PRUNE_AUDIT = "retention/prune_audit",
    RETENTION_PRUNE_SIGNALS = "retention/prune_signals",
    RETENTION_REDRIVE = "retention/redrive",
    RETENTION_TREE_CHILDREN = "retention/tree_children",
    RETENTION_TREE_DOOMED = "retention/tree_doomed",
    RETENTION_TREE_HELD = "retention/tree_held",
    RETENTION_TREE_IN_STATE = "retention/tree_in_state",
    RETENTION_TREE_ROOT = "retention/tree_root",
    RETENTION_UNDOOM = "retention/undoom",
    RETENTION_UNMARK = "retention/unmark",
}

row_statements! {
    BUDGET_OPEN = "budget/open", "(?)",
    EVENT_NEW = "event/new", "(?, ?, ?, ?, ?, ?)",
    EVENT_INSERT = "event/insert", "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    EVENT_PAYLOAD_WRITE = "event/payload_write", "(?, ?, ?, ?, ?)",
    CHILD_CANCEL = "child/cancel", "?",
    RUN_INSERT = "run/insert", "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    RUN_PAYLOAD_WRITE = "run/payload_write", "(?, ?, ?, ?, ?, ?)",
    RUN_HEADS = "run/heads", "?",
    RUN_BY_NO = "run/by_no", "?",
    RUN_STARTED_WITH = "run/started_with", "?",
    RUN_JOURNALS = "run/journals", "?",
    RUN_OPEN = "run/open", "?",
    RUN_RENEW = "run/renew", "?",
    RUN_PLAIN = "run/plain", "(?, ?, ?, ?, ?, ?)",
    RUN_PLAIN_STEP = "run/plain_step", "(?, ?, ?, ?, ?, ?, ?, ?, ?)",
    RUN_PLAIN_JOURNAL = "run/plain_journal", "(?, ?, ?, ?, ?, ?)",
    RUN_STEP = "run/step", "(?, ?, ?, ?, ?, ?, ?, ?, ?)",
    RUN_MOVE = "run/move", "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    JOURNAL_APPEND = "run/journal_append", "(?, ?, ?, ?, ?, ?)",
    RUN_RESULT_WRITE = "run/result_write", "(?, ?)",
}

/// Steps and their journals.
pub(crate) static RUN_PLAIN_WRITE: LazyLock<Rows> =
    LazyLock::new(|| Rows::together(&[&RUN_PLAIN_STEP, &RUN_PLAIN_JOURNAL]));

/// Moves of runs, their journals and results.
pub(crate) static RUN_MOVES: LazyLock<Rows> =
    LazyLock::new(|| Rows::together(&[&RUN_MOVE, &JOURNAL_APPEND, &RUN_RESULT_WRITE]));

/// Steps of runs, and their journals.
pub(crate) static RUN_STEPS: LazyLock<Rows> =
    LazyLock::new(|| Rows::together(&[&RUN_STEP, &JOURNAL_APPEND]));

/// Events and their payloads.
pub(crate) static EVENT_RECORD: LazyLock<Rows> =
    LazyLock::new(|| Rows::together(&[&EVENT_INSERT, &EVENT_PAYLOAD_WRITE]));

/// New runs, what they are started with, their counters, and what is journaled of them from the beginning.
pub(crate) static RUN_START: LazyLock<Rows> = LazyLock::new(|| {
    Rows::together(&[&RUN_INSERT, &RUN_PAYLOAD_WRITE, &BUDGET_OPEN, &RUN_PLAIN_JOURNAL])
});

/// Every statement by name, in each of its sizes.
pub(crate) fn all() -> Vec<(&'static str, &'static str)> {
    let single = SINGLE.iter().copied();
    let many = many().into_iter();
    let many =
        many.flat_map(|(name, rows)| rows.texts.iter().map(move |text| (name, text.as_str())));
    single.chain(many).collect()
}
