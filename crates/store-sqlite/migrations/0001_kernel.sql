-- Times are microseconds since 1970, UTC. Ids are 16 bytes. Payloads are JSON text, byte for byte.
-- Tables of other tables' rows name them by `no`, the row number; ids are for the world outside. A number that was read
-- in one transaction and is used in another one is never given twice: AUTOINCREMENT.

-- `schema` is the number of the last migration.
CREATE TABLE surefoot_meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE surefoot_workflow (
    no INTEGER PRIMARY KEY,
    app TEXT NOT NULL,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    -- The live version.
    active INTEGER REFERENCES surefoot_version (no),
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX surefoot_workflow_key ON surefoot_workflow (app, scope, key);

CREATE TABLE surefoot_version (
    no INTEGER PRIMARY KEY,
    id BLOB NOT NULL CHECK (length(id) = 16),
    workflow INTEGER NOT NULL REFERENCES surefoot_workflow (no),
    revision INTEGER NOT NULL CHECK (revision > 0),
    plan_hash TEXT NOT NULL,
    footprint_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    author TEXT NOT NULL,
    authorization TEXT,
    footprint TEXT NOT NULL,
    -- Caps of its effect budget, in millionths.
    budget TEXT NOT NULL,
    plan TEXT NOT NULL,
    source TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX surefoot_version_id ON surefoot_version (id);
CREATE UNIQUE INDEX surefoot_version_revision ON surefoot_version (workflow, revision);
CREATE INDEX surefoot_version_footprint ON surefoot_version (footprint_hash);
CREATE TRIGGER surefoot_version_is_immutable BEFORE UPDATE ON surefoot_version
BEGIN
    SELECT RAISE(ABORT, 'a stored version is never updated');
END;

CREATE TABLE surefoot_activation (
    no INTEGER PRIMARY KEY,
    workflow INTEGER NOT NULL REFERENCES surefoot_workflow (no),
    key TEXT NOT NULL,
    position INTEGER NOT NULL,
    app TEXT NOT NULL,
    scope TEXT NOT NULL,
    event TEXT NOT NULL,
    trigger_kind TEXT,
    authorization TEXT,
    -- What an operator disabled stays disabled, also while the live version does not have it.
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    present INTEGER NOT NULL CHECK (present IN (0, 1)),
    -- Of a schedule, when it is due, as JSON, and since when it stands like this.
    schedule TEXT,
    since INTEGER NOT NULL
) STRICT;
CREATE INDEX surefoot_activation_schedule ON surefoot_activation (app) WHERE schedule IS NOT NULL;
CREATE UNIQUE INDEX surefoot_activation_key ON surefoot_activation (workflow, key);
CREATE INDEX surefoot_activation_match ON surefoot_activation (app, scope, event);

CREATE TABLE surefoot_event (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL CHECK (length(id) = 16),
    app TEXT NOT NULL,
    scope TEXT NOT NULL,
    kind TEXT NOT NULL,
    dedupe_key TEXT,
    target TEXT,
    payload_hash TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    matched INTEGER NOT NULL,
    -- Its runs, 16 bytes each; kept when the payload is emptied.
    runs BLOB NOT NULL,
    status TEXT NOT NULL
        CHECK (status IN ('pending', 'dispatched', 'unmatched', 'retrying', 'dead_lettered')),
    attempts INTEGER NOT NULL,
    -- When dispatch is due; only while it is.
    due_at INTEGER,
    ended_at INTEGER,
    error TEXT,
    -- When its payload and its deliveries were deleted.
    emptied_at INTEGER,
    -- A JSON list, sorted; without tags nothing.
    tags TEXT,
    CHECK ((due_at IS NOT NULL) = (status IN ('pending', 'retrying')))
) STRICT;
CREATE UNIQUE INDEX surefoot_event_id ON surefoot_event (id);
CREATE UNIQUE INDEX surefoot_event_dedupe ON surefoot_event (app, scope, kind, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX surefoot_event_due ON surefoot_event (app, due_at) WHERE due_at IS NOT NULL;
-- By type and status; without a type by status, once for what is whole and once for what was emptied, which is entered
-- when it is. A list reads a page of each status.
CREATE INDEX surefoot_event_kind ON surefoot_event (app, kind, status, recorded_at, id);
CREATE INDEX surefoot_event_full ON surefoot_event (app, status, recorded_at, id) WHERE emptied_at IS NULL;
CREATE INDEX surefoot_event_emptied ON surefoot_event (app, status, recorded_at, id) WHERE emptied_at IS NOT NULL;
CREATE INDEX surefoot_event_tagged ON surefoot_event (app) WHERE tags IS NOT NULL;

CREATE TABLE surefoot_event_payload (
    event INTEGER PRIMARY KEY REFERENCES surefoot_event (no),
    data TEXT NOT NULL,
    context TEXT NOT NULL,
    authorization TEXT,
    -- W3C trace context.
    trace TEXT
) STRICT;

-- What an event matched when it was recorded, until its runs exist.
CREATE TABLE surefoot_delivery (
    event INTEGER NOT NULL REFERENCES surefoot_event (no),
    position INTEGER NOT NULL,
    run BLOB NOT NULL CHECK (length(run) = 16),
    workflow TEXT NOT NULL,
    version BLOB NOT NULL,
    footprint TEXT NOT NULL,
    trigger_kind TEXT,
    authorization TEXT
) STRICT;
CREATE UNIQUE INDEX surefoot_delivery_position ON surefoot_delivery (event, position);

CREATE TABLE surefoot_run (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    -- What never changes.
    id BLOB NOT NULL CHECK (length(id) = 16),
    app TEXT NOT NULL,
    scope TEXT NOT NULL,
    workflow TEXT NOT NULL,
    version BLOB NOT NULL REFERENCES surefoot_version (id),
    footprint TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('execute', 'dry_run')),
    event BLOB,
    trigger_kind TEXT,
    occurred_at INTEGER NOT NULL,
    root BLOB NOT NULL,
    parent_run BLOB,
    parent_step TEXT,
    parent_index INTEGER,
    parent_depth INTEGER,
    created_at INTEGER NOT NULL,
    -- What each commit writes. No index names one of these.
    generation INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    journal_bytes INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    step_attempt INTEGER NOT NULL,
    deadline TEXT,
    -- What the open step has paid.
    charged TEXT,
    last_failure TEXT,
    -- What only a move writes: claim, park, wake, end, mark, cancel.
    attempt INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    state TEXT NOT NULL CHECK (state IN
        ('queued', 'running', 'waiting', 'succeeded', 'failed', 'canceled', 'needs_attention')),
    -- End of the backoff while queued, end of the lease while running.
    claimable_at INTEGER,
    lease_owner BLOB,
    lease_length INTEGER,
    claim_nonce INTEGER,
    -- The deadline and the signal of a wait.
    wake_at INTEGER,
    wait_app_wide INTEGER CHECK (wait_app_wide IN (0, 1)),
    wait_scope TEXT,
    wait_kind TEXT,
    wait_key TEXT,
    effect_step TEXT,
    effect_action TEXT,
    effect_state TEXT CHECK (effect_state IN
        ('marked', 'ambiguous', 'succeeded', 'failed', 'not_performed', 'abandoned_unknown')),
    effect_since INTEGER,
    effect_evidence TEXT,
    cancel TEXT,
    -- What else its state has.
    detail TEXT,
    -- The signal that ended the open step's wait, until its outcome.
    signal INTEGER,
    resume TEXT,
    CHECK ((claimable_at IS NOT NULL) = (state IN ('queued', 'running'))),
    CHECK ((lease_owner IS NOT NULL) = (state = 'running')),
    CHECK ((lease_owner IS NOT NULL) = (lease_length IS NOT NULL)),
    CHECK ((ended_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'canceled'))),
    CHECK (wake_at IS NULL OR state = 'waiting'),
    CHECK (wait_kind IS NULL OR state = 'waiting'),
    CHECK ((detail IS NULL) = (state IN ('queued', 'running'))),
    CHECK ((effect_step IS NOT NULL) = (effect_state IS NOT NULL)),
    CHECK ((parent_run IS NOT NULL) = (parent_step IS NOT NULL)),
    CHECK ((parent_run IS NOT NULL) = (parent_index IS NOT NULL)),
    CHECK ((parent_run IS NOT NULL) = (parent_depth IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX surefoot_run_id ON surefoot_run (id);
CREATE INDEX surefoot_run_claim ON surefoot_run (app, mode, footprint, claimable_at, id) WHERE claimable_at IS NOT NULL;
CREATE INDEX surefoot_run_owner ON surefoot_run (lease_owner, claim_nonce) WHERE lease_owner IS NOT NULL;
CREATE INDEX surefoot_run_gone ON surefoot_run (app, claimable_at) WHERE cancel IS NOT NULL AND lease_owner IS NOT NULL;
CREATE INDEX surefoot_run_wake ON surefoot_run (app, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX surefoot_run_wait ON surefoot_run (app, wait_app_wide, wait_scope, wait_kind, wait_key)
    WHERE wait_kind IS NOT NULL;
CREATE INDEX surefoot_run_effect ON surefoot_run (app, effect_since) WHERE effect_state IS NOT NULL;
CREATE INDEX surefoot_run_live ON surefoot_run (app, footprint) WHERE ended_at IS NULL;
CREATE INDEX surefoot_run_newest ON surefoot_run (app, created_at, id);
CREATE INDEX surefoot_run_state ON surefoot_run (app, state, created_at, id);
CREATE UNIQUE INDEX surefoot_run_child ON surefoot_run (parent_run, parent_step, parent_index)
    WHERE parent_run IS NOT NULL;

-- Children that are held back until a sibling ends.
CREATE INDEX surefoot_run_held ON surefoot_run (parent_run, parent_step, parent_index)
    WHERE claimable_at = 9223372036854775807;

CREATE TRIGGER surefoot_child_stays_in_its_place BEFORE INSERT ON surefoot_run
WHEN NEW.parent_run IS NOT NULL AND NOT EXISTS (SELECT 1 FROM surefoot_run AS parent
    WHERE parent.id = NEW.parent_run AND parent.app = NEW.app AND parent.scope = NEW.scope)
BEGIN
    SELECT RAISE(ABORT, 'a child stays in the app and the scope of its parent');
END;

CREATE TRIGGER surefoot_child_keeps_its_place BEFORE UPDATE OF app, scope, parent_run ON surefoot_run
WHEN NEW.parent_run IS NOT NULL AND NOT EXISTS (SELECT 1 FROM surefoot_run AS parent
    WHERE parent.id = NEW.parent_run AND parent.app = NEW.app AND parent.scope = NEW.scope)
BEGIN
    SELECT RAISE(ABORT, 'a child stays in the app and the scope of its parent');
END;

CREATE INDEX surefoot_run_parent ON surefoot_run (parent_run, created_at, id) WHERE parent_run IS NOT NULL;
CREATE INDEX surefoot_run_tree ON surefoot_run (root) WHERE parent_run IS NOT NULL;
-- What a version is held by; also what the foreign key asks.
CREATE INDEX surefoot_run_version ON surefoot_run (version);

-- What the run was started with: its own copy.
CREATE TABLE surefoot_run_payload (
    run INTEGER PRIMARY KEY REFERENCES surefoot_run (no),
    data TEXT NOT NULL,
    -- Empty for a child: context, authorization, actor and trace are the root's.
    context TEXT,
    authorization TEXT,
    actor TEXT,
    trace TEXT
) STRICT;

-- What it ended with, if that is more than null.
CREATE TABLE surefoot_run_result (
    run INTEGER PRIMARY KEY REFERENCES surefoot_run (no),
    result TEXT NOT NULL
) STRICT;

-- Append-only: one row per commit that has journaled facts.
CREATE TABLE surefoot_journal (
    run INTEGER NOT NULL REFERENCES surefoot_run (no),
    seq INTEGER NOT NULL CHECK (seq >= 0),
    count INTEGER NOT NULL CHECK (count > 0),
    generation INTEGER NOT NULL,
    at INTEGER NOT NULL,
    facts TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX surefoot_journal_seq ON surefoot_journal (run, seq);

CREATE TABLE surefoot_signal (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    app TEXT NOT NULL,
    app_wide INTEGER NOT NULL CHECK (app_wide IN (0, 1)),
    scope TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    data TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    -- When a run recorded an outcome on it.
    spent_at INTEGER,
    -- Whether more runs waited for it than were woken at once.
    more INTEGER NOT NULL CHECK (more IN (0, 1)),
    CHECK (app_wide = 0 OR scope = '')
) STRICT;
CREATE UNIQUE INDEX surefoot_signal_key ON surefoot_signal (app, app_wide, scope, kind, key);
CREATE INDEX surefoot_signal_more ON surefoot_signal (app) WHERE more = 1;
CREATE INDEX surefoot_signal_unspent ON surefoot_signal (app) WHERE spent_at IS NULL;
CREATE INDEX surefoot_signal_spent ON surefoot_signal (app, spent_at) WHERE spent_at IS NOT NULL;

-- Counters of the whole tree of a root run, in millionths. Charges raise no revision.
CREATE TABLE surefoot_root_budget (
    root BLOB NOT NULL CHECK (length(root) = 16),
    dimension TEXT NOT NULL,
    used INTEGER NOT NULL CHECK (used >= 0),
    -- Without a cap it is counted only.
    cap INTEGER CHECK (cap >= 0),
    CHECK (cap IS NULL OR used <= cap)
) STRICT;
CREATE UNIQUE INDEX surefoot_root_budget_dimension ON surefoot_root_budget (root, dimension);

CREATE TABLE surefoot_worker_session (
    id BLOB NOT NULL CHECK (length(id) = 16),
    app TEXT NOT NULL,
    name TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('execute', 'dry_run')),
    offers TEXT NOT NULL,
    -- The root of the only tree that it works for.
    tree BLOB CHECK (length(tree) = 16),
    slots INTEGER NOT NULL,
    busy INTEGER NOT NULL,
    stuck INTEGER NOT NULL,
    ended INTEGER NOT NULL CHECK (ended IN (0, 1)),
    seen_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX surefoot_worker_session_id ON surefoot_worker_session (id);
CREATE INDEX surefoot_worker_session_live ON surefoot_worker_session (app, seen_at) WHERE ended = 0;

CREATE TABLE surefoot_audit (
    no INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    app TEXT NOT NULL,
    scope TEXT NOT NULL,
    actor TEXT NOT NULL,
    verb TEXT NOT NULL,
    reason TEXT NOT NULL,
    run BLOB,
    version BLOB,
    details TEXT NOT NULL
) STRICT;
CREATE INDEX surefoot_audit_app ON surefoot_audit (app);
CREATE INDEX surefoot_audit_run ON surefoot_audit (run) WHERE run IS NOT NULL;
-- What the deletion of its place has yet to bare.
CREATE INDEX surefoot_audit_detailed ON surefoot_audit (app, scope) WHERE run IS NOT NULL AND details <> '{}';

-- Workflows and scopes that are being deleted: nothing is published, emitted or dispatched there.
CREATE TABLE surefoot_deletion (
    app TEXT NOT NULL,
    scope TEXT NOT NULL,
    -- Empty: the whole scope.
    workflow TEXT NOT NULL,
    forced INTEGER NOT NULL CHECK (forced IN (0, 1)),
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    phase TEXT NOT NULL CHECK (phase IN ('cancel', 'events', 'runs', 'rest')),
    -- The last event that was looked at.
    cursor INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX surefoot_deletion_place ON surefoot_deletion (app, scope, workflow);

-- Trees of runs of which a part is deleted: nothing in them is retried.
CREATE TABLE surefoot_doomed (
    root BLOB NOT NULL CHECK (length(root) = 16),
    app TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX surefoot_doomed_root ON surefoot_doomed (root);
CREATE INDEX surefoot_doomed_app ON surefoot_doomed (app);

CREATE TABLE surefoot_child_group (
    no INTEGER PRIMARY KEY,
    parent BLOB NOT NULL REFERENCES surefoot_run (id),
    step TEXT NOT NULL,
    app TEXT NOT NULL,
    total INTEGER NOT NULL,
    live INTEGER NOT NULL,
    held INTEGER NOT NULL,
    parallel INTEGER NOT NULL CHECK (parallel > 0),
    -- Whether the step has recorded an outcome on the results.
    taken INTEGER NOT NULL CHECK (taken IN (0, 1)),
    -- Whether the parent waits for the last one.
    awaited INTEGER NOT NULL CHECK (awaited IN (0, 1)),
    -- The next index to which a cancel is carried on; only while it is on its way.
    cancel_from INTEGER,
    CHECK (live BETWEEN 0 AND total),
    CHECK (held BETWEEN 0 AND live)
) STRICT;

CREATE UNIQUE INDEX surefoot_child_group_step ON surefoot_child_group (parent, step);

CREATE INDEX surefoot_child_group_cancel ON surefoot_child_group (app) WHERE cancel_from IS NOT NULL;

CREATE INDEX surefoot_child_group_over ON surefoot_child_group (app) WHERE live = 0 AND awaited = 1;

-- Work that a process of its own does for a waiting step: one row per effect key.
CREATE TABLE surefoot_task (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    app TEXT NOT NULL,
    key TEXT NOT NULL,
    scope TEXT NOT NULL,
    run BLOB NOT NULL CHECK (length(run) = 16),
    step TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- Pinned when the step first asked.
    request TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'canceled')),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    -- Attempts that did not end well, the running one included.
    failures INTEGER NOT NULL CHECK (failures BETWEEN 0 AND attempts),
    -- When it may be taken while queued, the end of its worker's lease while running.
    due_at INTEGER,
    output TEXT,
    code TEXT,
    message TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    -- Its run was tried again since it ended: the step that asks for it next has it done afresh.
    retried INTEGER NOT NULL CHECK (retried IN (0, 1)),
    CHECK (retried = 0 OR state IN ('failed', 'canceled')),
    CHECK ((due_at IS NOT NULL) = (state IN ('queued', 'running'))),
    CHECK ((ended_at IS NULL) = (state IN ('queued', 'running'))),
    CHECK ((output IS NOT NULL) = (state = 'succeeded')),
    CHECK ((code IS NOT NULL) = (state = 'failed'))
) STRICT;
CREATE UNIQUE INDEX surefoot_task_key ON surefoot_task (app, key);
CREATE INDEX surefoot_task_due ON surefoot_task (app, due_at, no) WHERE due_at IS NOT NULL;
CREATE INDEX surefoot_task_run ON surefoot_task (run);
