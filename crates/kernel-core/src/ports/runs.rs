//! Runs: claim, load, commit, renew, recover.

use async_trait::async_trait;

use super::{Commit, Committed, EmitError, JournalEntry, StoreError};
use crate::event::CheckedEvent;
use crate::plan::Footprint;
use crate::{
    App, Invocation, Lease, Micros, Mode, Origin, Plans, Receipt, RestoreInvalid, Run, RunId,
    Scope, SessionId, Stamp, Timestamp, VersionId, WorkflowKey,
};

/// Stores runs and their journals. Every method is atomic; every check of time is on the store's clock.
///
/// Not cancel safe in the sense that a write may have happened when the future is dropped; each write is
/// repeatable or found again: a claim by its nonce, a commit by the run's revision.
#[async_trait]
pub trait RunStore: Send + Sync {
    /// The store's clock: the clock of record.
    async fn store_now(&self) -> Result<Timestamp, StoreError>;

    /// Creates a run in mode `dry_run` directly from a version, without an event. A repeated id returns the run as it is.
    ///
    /// # Errors
    /// [`EmitError::BeingDeleted`] where a deletion has begun; the store's.
    async fn dry_run_create(&self, create: CreateDryRun) -> Result<Run, EmitError>;

    /// Claims due runs, by (`ready_at`, id): queued ones whose time has come, and running ones whose lease ran out.
    /// Each becomes what [`Plans::begin`] says, revision raised by one. Claimers do not wait for each other. A repeated
    /// nonce of the same session returns what it claimed before.
    ///
    /// They come as reading them would bring them. One with more than [`CLAIM_MAX_BYTES`] behind it, or that cannot be
    /// read, has neither invocation nor journal with it.
    async fn run_claim(&self, request: ClaimRequest) -> Result<Vec<Stored>, StoreError>;

    /// Reads a run, its invocation and its journal (or the part after `after`).
    async fn run_load(&self, request: LoadRequest) -> Result<Option<Stored>, StoreError>;

    /// Writes a run if its generation and revision are still those of `commit.before`.
    ///
    /// A commit that parks on a signal which exists already, or on children of which none is live, wakes the run in the same transaction
    /// ([`RowInput::Wake`](crate::RowInput::Wake) with `at_once`). A run that stays running keeps the lease that the
    /// row has, since a renewal may have moved it after the run was read. Its charge goes to the counters of its root
    /// run ([`Budget::charge`](crate::Budget::charge)), which raises no revision.
    ///
    /// # Errors
    /// `LeaseLost`, `Conflict`, `BudgetExceeded`: nothing was written, and other commits are not touched. `UnknownOutcome`: take the run over before anything.
    async fn run_commit(&self, commit: Commit) -> Result<Committed, StoreError>;

    /// Raises a run's generation, whatever its state, so that a commit in doubt is final: done or fenced out. A run
    /// whose generation differs already, or that succeeded or was canceled, comes back as it is: there it is final.
    async fn run_take_over(&self, request: TakeOverRequest) -> Result<Option<Run>, StoreError>;

    /// Renews the leases of a session in one go. Changes neither generation nor revision.
    async fn lease_renew(&self, request: RenewRequest)
    -> Result<Vec<(RunId, Renewed)>, StoreError>;

    /// Of these runs, those that are still of the same generation and whose cancel was requested: what a worker asks
    /// once a second for all runs that it holds. The stamps' revisions are not looked at.
    async fn cancel_list(&self, held: &[Stamp]) -> Result<Vec<RunId>, StoreError>;

    /// Of these runs those of an app that go on by themselves: queued, running or waiting. What a process asks at once for
    /// everybody in it who waits for the end of a run.
    async fn run_open(&self, app: &App, runs: &[RunId]) -> Result<Vec<RunId>, StoreError>;

    /// One bounded pass of recovery: wakes waiting runs whose deadline passed, whose signal exists or whose children
    /// have all ended, finalises canceled runs whose lease ran out, and carries cancels on to children, from the top of
    /// a tree down. `more` says that the limit was reached.
    async fn run_recover(&self, scan: Scan) -> Result<Recovered, StoreError>;

    /// All that a worker's scan may find of an app, in one question that writes nothing: an idle worker asks nothing
    /// else about runs and events. What it says may be over, or somebody else's, when it is acted on.
    async fn work_due(&self, app: &App, mode: Mode) -> Result<WorkDue, StoreError>;

    /// The distinct footprints of runs that are not terminal: what workers must be able to run.
    async fn footprint_list(&self, app: &App) -> Result<Vec<Footprint>, StoreError>;

    /// A worker session says that it lives, what it can run and how busy it is.
    async fn session_report(&self, report: SessionReport) -> Result<(), StoreError>;
}

/// A dry run to create.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateDryRun {
    /// Made by the caller, so that a creation in doubt is found again.
    pub id: RunId,
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Of which workflow.
    pub workflow: WorkflowKey,
    /// Of which version, live or not.
    pub version: VersionId,
    /// Hash of the version's footprint.
    pub footprint: String,
    /// The trigger whose `with` computes the inputs; none takes the event's data.
    pub trigger: Option<String>,
    /// What would have occurred. It is not recorded as an event, and its dedupe key is not looked at.
    pub event: CheckedEvent,
}

impl CreateDryRun {
    /// The run, for stores.
    #[must_use]
    pub fn run(&self, now: Timestamp) -> Run {
        let origin = Origin {
            app: self.app.clone(),
            scope: self.scope.clone(),
            workflow: self.workflow.clone(),
            version: self.version,
            footprint: self.footprint.clone(),
            mode: Mode::DryRun,
            event: None,
            trigger: self.trigger.clone(),
            occurred_at: self.event.occurred_at.unwrap_or(now),
            root: self.id,
            parent: None,
            created_at: now,
        };
        Run::new(self.id, origin)
    }
}

/// What a worker wants to claim.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimRequest {
    /// Only its runs.
    pub app: App,
    /// Only of this mode.
    pub mode: Mode,
    /// Footprint hashes that the worker can run.
    pub footprints: Vec<String>,
    /// Only runs of the tree with this root, if it works for one tree alone.
    pub tree: Option<RunId>,
    /// At most so many.
    pub limit: u32,
    /// Who claims.
    pub session: SessionId,
    /// Names this claim within the session, so that it is found again.
    pub nonce: u64,
    /// How long the lease lasts.
    pub lease: Micros,
    /// What the worker has read of plans.
    pub plans: Plans,
}

/// Bytes of what started a run, and of its journal, with which a claim brings it whole: claims are of many runs.
pub const CLAIM_MAX_BYTES: u64 = 32 * 1024;

impl ClaimRequest {
    /// The lease of a run that is claimed then.
    #[must_use]
    pub const fn lease(&self, now: Timestamp) -> Lease {
        Lease { owner: self.session, until: now.plus(self.lease), length: self.lease }
    }
}

/// Which run to read, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadRequest {
    /// Which run.
    pub run: RunId,
    /// With this many facts known already: only later journal rows, and no invocation. `None` reads all.
    pub after: Option<u64>,
}

/// A run as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The row.
    pub run: Run,
    /// What started it; absent if only later rows were asked for, or if a claim did not bring it.
    pub invocation: Option<Invocation>,
    /// In order; or why a row cannot be read. Other runs are not affected.
    pub journal: Result<Vec<JournalEntry>, RestoreInvalid>,
    /// Opens the commands that wait for no facts but those read.
    pub receipt: Receipt,
    /// The store's time.
    pub now: Timestamp,
}

/// A worker takes a run over from itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeOverRequest {
    /// Which run.
    pub run: RunId,
    /// The generation under which the commit in doubt was sent.
    pub generation: u64,
    /// Who.
    pub session: SessionId,
    /// How long the new lease lasts.
    pub lease: Micros,
}

/// The leases that a session holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewRequest {
    /// Who holds them.
    pub session: SessionId,
    /// Run and generation (the stamp's revision is not looked at).
    pub runs: Vec<Stamp>,
    /// How long they last from now.
    pub lease: Micros,
}

/// What became of one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// Held until then.
    Held {
        /// Store time.
        until: Timestamp,
        /// Whether cancel was requested.
        canceled: bool,
    },
    /// Another generation holds the run, or it is not running any more.
    Lost,
    /// A fence of the run's own action is held: nothing was written.
    FenceHeld,
}

/// One bounded pass of recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Only its runs.
    pub app: App,
    /// At most so many of each kind.
    pub limit: u32,
}

/// What there is to do for the workers of an app.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkDue {
    /// Whether [`RunStore::run_recover`] would look at something.
    pub recover: bool,
    /// Whether a deferred event is due, for [`EventStore::event_dispatch`](super::EventStore::event_dispatch).
    pub dispatch: bool,
    /// What [`RunStore::footprint_list`] says.
    pub footprints: Vec<Footprint>,
    /// Those of them of which [`RunStore::run_claim`] would find a run of the mode that was asked for.
    pub claimable: Vec<Footprint>,
}

/// What a pass of recovery did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Runs that are queued again.
    pub woken: Vec<RunId>,
    /// Canceled runs whose worker was gone, and children to which a cancel was carried on.
    pub finalised: Vec<RunId>,
    /// Whether there may be more.
    pub more: bool,
}

/// A worker session says that it lives.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionReport {
    /// Who.
    pub session: SessionId,
    /// Whose runs.
    pub app: App,
    /// For people: host and process.
    pub name: String,
    /// Which runs it takes.
    pub mode: Mode,
    /// What it can run.
    pub offers: Vec<Footprint>,
    /// The root of the only tree whose runs it takes, if there is one.
    pub tree: Option<RunId>,
    /// Its slots.
    pub slots: u32,
    /// Slots in use.
    pub busy: u32,
    /// Slots whose hook does not return though its time is over.
    pub stuck: u32,
    /// It has ended in order.
    pub ended: bool,
}
