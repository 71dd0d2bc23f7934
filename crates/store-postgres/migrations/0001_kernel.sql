-- Times are microseconds since 1970, UTC. Payloads are JSON text, byte for byte.
-- No foreign key leads to `run` or `event`, or from them to `version`: each insert would lock the row that it names.
-- Deletion goes from the leaves to the root, and takes locks of its own.
-- No index names, or is conditioned on, a column that steps write: their updates must stay inside their page.

CREATE SCHEMA IF NOT EXISTS surefoot;

-- `schema` is the number of the last migration, `deletions` how often a deletion has begun, `catalog` the transaction
-- that last changed what events match.
CREATE TABLE surefoot.meta (
    key text PRIMARY KEY,
    value text NOT NULL
);
INSERT INTO surefoot.meta VALUES ('deletions', '0'), ('catalog', '0');

-- The database's clock. It moves on within a transaction.
CREATE FUNCTION surefoot.clock() RETURNS bigint LANGUAGE sql VOLATILE
    AS 'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

CREATE TABLE surefoot.workflow (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app text NOT NULL,
    scope text NOT NULL,
    key text NOT NULL,
    -- The live version.
    active uuid,
    created_at bigint NOT NULL
);
CREATE UNIQUE INDEX workflow_key ON surefoot.workflow (app, scope, key);

CREATE TABLE surefoot.version (
    id uuid PRIMARY KEY,
    workflow bigint NOT NULL REFERENCES surefoot.workflow (no),
    revision bigint NOT NULL CHECK (revision > 0),
    plan_hash text NOT NULL,
    footprint_hash text NOT NULL,
    created_at bigint NOT NULL,
    author text NOT NULL,
    "authorization" text,
    footprint text NOT NULL,
    -- Caps of its effect budget, in millionths: a JSON object.
    budget text NOT NULL,
    plan text NOT NULL,
    source text NOT NULL
);
CREATE UNIQUE INDEX version_revision ON surefoot.version (workflow, revision);
CREATE INDEX version_footprint ON surefoot.version (footprint_hash);
ALTER TABLE surefoot.workflow ADD FOREIGN KEY (active) REFERENCES surefoot.version (id);
-- What the foreign key asks when a version is deleted.
CREATE INDEX workflow_active ON surefoot.workflow (active) WHERE active IS NOT NULL;

CREATE FUNCTION surefoot.version_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a stored version is never updated' USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TRIGGER version_is_immutable BEFORE UPDATE ON surefoot.version
    FOR EACH ROW EXECUTE FUNCTION surefoot.version_is_immutable();

CREATE TABLE surefoot.activation (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workflow bigint NOT NULL REFERENCES surefoot.workflow (no),
    key text NOT NULL,
    position bigint NOT NULL,
    app text NOT NULL,
    scope text NOT NULL,
    event text NOT NULL,
    trigger_kind text,
    "authorization" text,
    -- What an operator disabled stays disabled, also while the live version does not have it.
    enabled boolean NOT NULL,
    present boolean NOT NULL,
    -- Of a schedule, when it is due, as JSON, and since when it stands like this.
    schedule text,
    since bigint NOT NULL
);
CREATE INDEX activation_schedule ON surefoot.activation (app) WHERE schedule IS NOT NULL;
CREATE UNIQUE INDEX activation_key ON surefoot.activation (workflow, key);
CREATE INDEX activation_match ON surefoot.activation (app, scope, event);

-- Who keeps what events match asks by this whether it still holds. At the end of the transaction, when it waits for
-- nothing else any more: two that change the catalog cannot lock each other out.
CREATE FUNCTION surefoot.catalog_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE surefoot.meta SET value = pg_current_xact_id()::text
    WHERE key = 'catalog' AND value <> pg_current_xact_id()::text;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER activation_changes AFTER INSERT OR UPDATE OR DELETE ON surefoot.activation
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION surefoot.catalog_changes();
CREATE CONSTRAINT TRIGGER live_version_changes AFTER UPDATE OF active OR DELETE ON surefoot.workflow
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION surefoot.catalog_changes();

-- This table and the journal have no constraints that compute: those are read anew for each statement, which costs more
-- than a row does.
CREATE TABLE surefoot.event (
    id uuid PRIMARY KEY,
    app text NOT NULL,
    scope text NOT NULL,
    kind text NOT NULL,
    dedupe_key text,
    target text,
    payload_hash text NOT NULL,
    occurred_at bigint NOT NULL,
    recorded_at bigint NOT NULL,
    matched bigint NOT NULL,
    -- Its runs; kept when the payload is emptied.
    runs uuid[] NOT NULL,
    -- Pending, dispatched, unmatched, retrying or dead_lettered.
    status text NOT NULL,
    attempts bigint NOT NULL,
    -- When dispatch is due; only while it is pending or retrying.
    due_at bigint,
    ended_at bigint,
    error text,
    -- When its payload and its deliveries were deleted.
    emptied_at bigint,
    -- A list, sorted; without tags nothing.
    tags jsonb
);
CREATE UNIQUE INDEX event_dedupe ON surefoot.event (app, scope, kind, dedupe_key)
    WHERE dedupe_key IS NOT NULL;
CREATE INDEX event_due ON surefoot.event (app, due_at) WHERE due_at IS NOT NULL;
-- By type and status; without a type by status, once for what is whole and once for what was emptied, which is entered
-- when it is. A list reads a page of each status.
CREATE INDEX event_kind ON surefoot.event (app, kind, status, recorded_at, id);
CREATE INDEX event_full ON surefoot.event (app, status, recorded_at, id) WHERE emptied_at IS NULL;
CREATE INDEX event_emptied ON surefoot.event (app, status, recorded_at, id) WHERE emptied_at IS NOT NULL;
CREATE INDEX event_tags ON surefoot.event USING gin (tags jsonb_path_ops) WHERE tags IS NOT NULL;
-- What the deletion of a place has yet to look at, and the events of a scope that has few.
CREATE INDEX event_place ON surefoot.event (app, scope, id);

CREATE TABLE surefoot.event_payload (
    event uuid PRIMARY KEY,
    data text NOT NULL,
    context text NOT NULL,
    "authorization" text,
    -- W3C trace context.
    trace text
);

-- What an event matched when it was recorded, until its runs exist.
CREATE TABLE surefoot.delivery (
    event uuid NOT NULL,
    position bigint NOT NULL,
    run uuid NOT NULL,
    workflow text NOT NULL,
    version uuid NOT NULL,
    footprint text NOT NULL,
    trigger_kind text,
    "authorization" text,
    PRIMARY KEY (event, position)
);

CREATE TABLE surefoot.run (
    -- What never changes.
    id uuid NOT NULL,
    app text NOT NULL,
    scope text NOT NULL,
    workflow text NOT NULL,
    version uuid NOT NULL,
    footprint text NOT NULL,
    mode text NOT NULL,
    event uuid,
    trigger_kind text,
    occurred_at bigint NOT NULL,
    root uuid NOT NULL,
    parent_run uuid,
    parent_step text,
    parent_index bigint,
    parent_depth bigint,
    created_at bigint NOT NULL,
    -- What each commit writes. No index names one of these.
    generation bigint NOT NULL,
    revision bigint NOT NULL,
    seq bigint NOT NULL,
    journal_bytes bigint NOT NULL,
    failures bigint NOT NULL,
    step_attempt bigint NOT NULL,
    deadline text,
    -- What the open step has paid.
    charged text,
    last_failure text,
    -- The end of the lease, and its length: what renewals write. No index names them either.
    lease_until bigint,
    lease_length bigint,
    -- What only a move writes: claim, park, wake, end, mark, cancel.
    attempt bigint NOT NULL,
    started_at bigint,
    ended_at bigint,
    state text NOT NULL,
    -- End of the backoff while queued; while running, not after the end of the lease, which a renewal need not carry
    -- over to here at once.
    claimable_at bigint,
    lease_owner uuid,
    claim_nonce bigint,
    -- The deadline and the signal of a wait.
    wake_at bigint,
    wait_app_wide boolean,
    wait_scope text,
    wait_kind text,
    wait_key text,
    effect_step text,
    effect_action text,
    effect_state text,
    effect_since bigint,
    effect_evidence text,
    -- Whether an effect is open, or was since the run began to run: what an index may name, since the marks and
    -- outcomes of one execution write it once.
    effectful boolean NOT NULL DEFAULT false,
    cancel text,
    -- What else its state has.
    detail text,
    -- The signal that ended the open step's wait, until its outcome.
    signal bigint,
    resume text,
    CONSTRAINT run_pkey PRIMARY KEY (id)
    -- A claim and an end leave a dead row each: with a fifth of a large table, which is the default, they would be too many.
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX run_claim ON surefoot.run (app, mode, footprint, claimable_at, id)
    WHERE claimable_at IS NOT NULL;
CREATE INDEX run_owner ON surefoot.run (lease_owner, claim_nonce) WHERE lease_owner IS NOT NULL;
CREATE INDEX run_gone ON surefoot.run (app, claimable_at)
    WHERE cancel IS NOT NULL AND lease_owner IS NOT NULL;
CREATE INDEX run_wake ON surefoot.run (app, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX run_wait ON surefoot.run (app, wait_app_wide, wait_scope, wait_kind, wait_key)
    WHERE wait_kind IS NOT NULL;
CREATE INDEX run_effect ON surefoot.run (app) WHERE effectful;
CREATE INDEX run_live ON surefoot.run (app, footprint) WHERE ended_at IS NULL;
CREATE INDEX run_newest ON surefoot.run (app, created_at, id);
CREATE INDEX run_dry ON surefoot.run (app, created_at, id) WHERE mode = 'dry_run';
CREATE INDEX run_state ON surefoot.run (app, state, created_at, id);
-- What is counted of runs that have ended: entered once, when a run ends. The first has equal entries, which take little.
-- The second says in other words what has ended, so that the first is not taken in its place.
CREATE INDEX run_ended ON surefoot.run (app, state) WHERE ended_at IS NOT NULL;
CREATE INDEX run_told ON surefoot.run (app, state, created_at) INCLUDE (started_at, scope)
    WHERE state IN ('succeeded', 'failed', 'canceled') AND parent_run IS NULL AND mode = 'execute';
CREATE INDEX run_exhausted ON surefoot.run (app)
    WHERE state = 'failed' AND position('"code":"RETRY_EXHAUSTED"' IN detail) > 0;
CREATE UNIQUE INDEX run_child ON surefoot.run (parent_run, parent_step, parent_index)
    WHERE parent_run IS NOT NULL;
-- Children that are held back until a sibling ends.
CREATE INDEX run_held ON surefoot.run (parent_run, parent_step, parent_index)
    WHERE claimable_at = 9223372036854775807;
CREATE INDEX run_parent ON surefoot.run (parent_run, created_at, id) WHERE parent_run IS NOT NULL;
CREATE INDEX run_tree ON surefoot.run (root) WHERE parent_run IS NOT NULL;
-- What a version is held by.
CREATE INDEX run_version ON surefoot.run (version);

-- What holds of every run. As constraints of the table these would be read anew for each statement, and asked for each
-- step; they are asked where a run is created or moves.
CREATE FUNCTION surefoot.run_is_coherent() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_ended boolean := NEW.state IN ('succeeded', 'failed', 'canceled');
    is_running boolean := NEW.state = 'running';
    is_waiting boolean := NEW.state = 'waiting';
    is_claimable boolean := is_running OR NEW.state = 'queued';
BEGIN
    IF (NEW.mode IN ('execute', 'dry_run')
        AND (is_ended OR is_waiting OR is_claimable OR NEW.state = 'needs_attention')
        AND (NEW.claimable_at IS NOT NULL) = is_claimable
        AND (NEW.lease_owner IS NOT NULL) = is_running
        AND (NEW.lease_length IS NOT NULL) = is_running
        AND (NEW.lease_until IS NOT NULL) = is_running
        AND (NOT is_running OR NEW.claimable_at <= NEW.lease_until)
        AND (NEW.ended_at IS NOT NULL) = is_ended
        AND (NEW.wake_at IS NULL OR is_waiting)
        AND (NEW.wait_kind IS NULL OR is_waiting)
        AND (NEW.detail IS NULL) = is_claimable
        AND (NEW.effect_step IS NOT NULL) = (NEW.effect_state IS NOT NULL)
        AND (NEW.effect_state IS NULL OR NEW.effectful AND NEW.effect_state IN
            ('marked', 'ambiguous', 'succeeded', 'failed', 'not_performed', 'abandoned_unknown'))
        AND (NEW.parent_run IS NOT NULL) = (NEW.parent_step IS NOT NULL)
        AND (NEW.parent_run IS NOT NULL) = (NEW.parent_index IS NOT NULL)
        AND (NEW.parent_run IS NOT NULL) = (NEW.parent_depth IS NOT NULL)) IS NOT TRUE
    THEN
        RAISE EXCEPTION 'run % contradicts itself', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER run_begins_coherent AFTER INSERT ON surefoot.run
    FOR EACH ROW EXECUTE FUNCTION surefoot.run_is_coherent();
CREATE TRIGGER run_stays_coherent
    AFTER UPDATE OF state, claimable_at, lease_owner, ended_at, wake_at, wait_kind, detail, effect_step, effect_state
    ON surefoot.run FOR EACH ROW
    WHEN (OLD.state <> NEW.state OR OLD.lease_owner IS DISTINCT FROM NEW.lease_owner
        OR OLD.claimable_at IS DISTINCT FROM NEW.claimable_at OR OLD.effect_state IS DISTINCT FROM NEW.effect_state)
    EXECUTE FUNCTION surefoot.run_is_coherent();

CREATE FUNCTION surefoot.child_stays_in_its_place() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- By its key, whatever the planner believes of an index that begins with the app.
    IF NOT EXISTS (SELECT FROM surefoot.run AS parent
        WHERE parent.id = NEW.parent_run AND (parent.app = NEW.app AND parent.scope = NEW.scope) IS TRUE)
    THEN
        RAISE EXCEPTION 'a child stays in the app and the scope of its parent'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END
$$;
-- Not before: an update would look for each row, and lock it, twice.
CREATE TRIGGER child_stays_in_its_place AFTER INSERT ON surefoot.run
    FOR EACH ROW WHEN (NEW.parent_run IS NOT NULL)
    EXECUTE FUNCTION surefoot.child_stays_in_its_place();
CREATE TRIGGER child_keeps_its_place AFTER UPDATE OF app, scope, parent_run ON surefoot.run
    FOR EACH ROW WHEN (NEW.parent_run IS NOT NULL)
    EXECUTE FUNCTION surefoot.child_stays_in_its_place();

-- What the run was started with: its own copy.
CREATE TABLE surefoot.run_payload (
    run uuid PRIMARY KEY,
    data text NOT NULL,
    -- Empty for a child: context, authorization, actor and trace are the root's.
    context text,
    "authorization" text,
    actor text,
    trace text
);

-- What it ended with, if that is more than null.
CREATE TABLE surefoot.run_result (
    run uuid PRIMARY KEY,
    result text NOT NULL
);

-- Append-only: one row per commit that has journaled facts.
CREATE TABLE surefoot.journal (
    run uuid NOT NULL,
    seq bigint NOT NULL,
    count bigint NOT NULL,
    generation bigint NOT NULL,
    at bigint NOT NULL,
    facts text NOT NULL,
    PRIMARY KEY (run, seq)
);

-- What processes send the rows of a batch as: an array of these is read in one go, an array per column costs each time
-- what a function costs.
-- What a commit leaves: the stamp that it was decided on, and the columns as they are to be.
CREATE TYPE surefoot.after AS (
    id uuid,
    generation bigint,
    revision bigint,
    seq bigint,
    journal_bytes bigint,
    failures bigint,
    step_attempt bigint,
    deadline text,
    charged text,
    last_failure text,
    ended_at bigint,
    state text,
    claimable_at bigint,
    wake_at bigint,
    detail text,
    effect_step text,
    effect_action text,
    effect_state text,
    effect_since bigint,
    effect_evidence text
);
-- `entry` is the place in its batch of the commit that has it.
CREATE TYPE surefoot.facts AS (entry bigint, run uuid, seq bigint, count bigint, generation bigint, facts text);
CREATE TYPE surefoot.result AS (entry bigint, run uuid, result text);
-- An event without a time of its own occurs when it is recorded.
CREATE TYPE surefoot.new_event AS (
    id uuid,
    place integer,
    app text,
    scope text,
    kind text,
    dedupe_key text,
    target text,
    payload_hash text,
    occurred_at bigint,
    matched bigint,
    runs uuid[],
    status text,
    data text,
    context text,
    "authorization" text,
    trace text,
    tags text
);
-- What a new run has beside its row.
CREATE TYPE surefoot.new_run AS (run uuid, event uuid, "authorization" text, actor text, version uuid, has_budget boolean);

CREATE TABLE surefoot.signal (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app text NOT NULL,
    app_wide boolean NOT NULL,
    scope text NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    data text NOT NULL,
    recorded_at bigint NOT NULL,
    -- When a run recorded an outcome on it.
    spent_at bigint,
    -- Whether more runs waited for it than were woken at once.
    more boolean NOT NULL,
    CHECK (NOT app_wide OR scope = '')
);
CREATE UNIQUE INDEX signal_key ON surefoot.signal (app, app_wide, scope, kind, key);
CREATE INDEX signal_more ON surefoot.signal (app) WHERE more;
CREATE INDEX signal_unspent ON surefoot.signal (app, no) WHERE spent_at IS NULL;
CREATE INDEX signal_spent ON surefoot.signal (app, spent_at) WHERE spent_at IS NOT NULL;

-- Counters of the whole tree of a root run, in millionths. Charges raise no revision.
CREATE TABLE surefoot.root_budget (
    root uuid NOT NULL,
    dimension text NOT NULL,
    used bigint NOT NULL CHECK (used >= 0),
    -- Without a cap it is counted only.
    cap bigint CHECK (cap >= 0),
    CHECK (cap IS NULL OR used <= cap),
    PRIMARY KEY (root, dimension)
) WITH (fillfactor = 60);

CREATE TABLE surefoot.worker_session (
    id uuid PRIMARY KEY,
    app text NOT NULL,
    name text NOT NULL,
    mode text NOT NULL CHECK (mode IN ('execute', 'dry_run')),
    offers text NOT NULL,
    -- The root of the only tree that it works for.
    tree uuid,
    slots bigint NOT NULL,
    busy bigint NOT NULL,
    stuck bigint NOT NULL,
    ended boolean NOT NULL,
    seen_at bigint NOT NULL
);
CREATE INDEX worker_session_live ON surefoot.worker_session (app, seen_at) WHERE NOT ended;

CREATE TABLE surefoot.audit (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    app text NOT NULL,
    scope text NOT NULL,
    actor text NOT NULL,
    verb text NOT NULL,
    reason text NOT NULL,
    run uuid,
    version uuid,
    details text NOT NULL
);
CREATE INDEX audit_app ON surefoot.audit (app, no);
CREATE INDEX audit_old ON surefoot.audit (app, at);
CREATE INDEX audit_run ON surefoot.audit (run) WHERE run IS NOT NULL;
-- What the deletion of its place has yet to bare.
CREATE INDEX audit_detailed ON surefoot.audit (app, scope) WHERE run IS NOT NULL AND details <> '{}';

-- Workflows and scopes that are being deleted: nothing is published, emitted or dispatched there.
CREATE TABLE surefoot.deletion (
    app text NOT NULL,
    scope text NOT NULL,
    -- Empty: the whole scope.
    workflow text NOT NULL,
    forced boolean NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    phase text NOT NULL CHECK (phase IN ('cancel', 'events', 'runs', 'rest')),
    -- The last event that was looked at.
    cursor uuid,
    PRIMARY KEY (app, scope, workflow)
);

-- Who records into a scope shares a lock with everybody who does so, and reads the marks once it has it: in a statement
-- of its own, since one that waits does not see what was committed meanwhile. Whoever sets a mark has the lock alone,
-- for a moment at a time: who waits for a lock keeps those behind it waiting. Its first number is `dele` in ASCII.
CREATE FUNCTION surefoot.deleting(place integer, of_app text, of_scope text, of_workflow text)
    RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    marked text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1684368485, place);
    -- One snapshot for all of the transaction does not show a mark that was set since: then this row has changed, and
    -- the database refuses it in favour of the other transaction.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM FROM surefoot.meta WHERE key = 'deletions' FOR SHARE;
    END IF;
    SELECT deletion.workflow INTO marked FROM surefoot.deletion
    WHERE deletion.app = of_app AND deletion.scope = of_scope AND deletion.workflow IN ('', of_workflow)
    LIMIT 1;
    RETURN marked;
END
$$;

CREATE FUNCTION surefoot.close_place(place integer) RETURNS boolean LANGUAGE plpgsql
    SET lock_timeout = '50ms' AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1684368485, place);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;

-- Trees of runs of which a part is deleted: nothing in them is retried.
CREATE TABLE surefoot.doomed (
    root uuid PRIMARY KEY,
    app text NOT NULL
);
CREATE INDEX doomed_app ON surefoot.doomed (app);

CREATE TABLE surefoot.child_group (
    parent uuid NOT NULL,
    step text NOT NULL,
    app text NOT NULL,
    total bigint NOT NULL,
    live bigint NOT NULL,
    held bigint NOT NULL,
    parallel bigint NOT NULL CHECK (parallel > 0),
    -- Whether the step has recorded an outcome on the results.
    taken boolean NOT NULL,
    -- Whether the parent waits for the last one.
    awaited boolean NOT NULL,
    -- The next index to which a cancel is carried on; only while it is on its way.
    cancel_from bigint,
    CHECK (live BETWEEN 0 AND total),
    CHECK (held BETWEEN 0 AND live),
    PRIMARY KEY (parent, step)
) WITH (fillfactor = 60);
CREATE INDEX child_group_cancel ON surefoot.child_group (app) WHERE cancel_from IS NOT NULL;
CREATE INDEX child_group_over ON surefoot.child_group (app) WHERE live = 0 AND awaited;
-- Children that could begin, but were not let go when a sibling ended.
CREATE INDEX child_group_room ON surefoot.child_group (app) WHERE held > 0 AND live - held < parallel;

-- Work that a process of its own does for a waiting step: one row per effect key.
CREATE TABLE surefoot.task (
    app text NOT NULL,
    key text NOT NULL,
    scope text NOT NULL,
    run uuid NOT NULL,
    step text NOT NULL,
    kind text NOT NULL,
    -- Pinned when the step first asked.
    request text NOT NULL,
    state text NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'canceled')),
    attempts bigint NOT NULL CHECK (attempts >= 0),
    -- Attempts that did not end well, the running one included.
    failures bigint NOT NULL CHECK (failures BETWEEN 0 AND attempts),
    -- When it may be taken while queued, the end of its worker's lease while running.
    due_at bigint,
    output text,
    code text,
    message text,
    created_at bigint NOT NULL,
    ended_at bigint,
    -- Its run was tried again since it ended: the step that asks for it next has it done afresh.
    retried boolean NOT NULL,
    CHECK (NOT retried OR state IN ('failed', 'canceled')),
    CHECK ((due_at IS NOT NULL) = (state IN ('queued', 'running'))),
    CHECK ((ended_at IS NULL) = (state IN ('queued', 'running'))),
    CHECK ((output IS NOT NULL) = (state = 'succeeded')),
    CHECK ((code IS NOT NULL) = (state = 'failed')),
    PRIMARY KEY (app, key)
);
CREATE INDEX task_due ON surefoot.task (app, due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX task_run ON surefoot.task (run);
