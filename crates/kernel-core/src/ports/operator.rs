//! What people look at. Lists never read payloads.

use async_trait::async_trait;
use serde_json::Value;

use super::{GroupRow, JournalEntry, Place, StoreError};
use crate::payload::is_storable;
use crate::plan::Footprint;
use crate::{
    App, Budget, EffectState, EventId, Invocation, Micros, Mode, OpenEffect, Origin,
    RestoreInvalid, Run, RunId, RunState, Scope, SessionId, StepKey, Timestamp, VersionId,
    WorkflowKey,
};

/// The operator's reads. Writes go through [`RunStore::run_commit`](super::RunStore::run_commit) with an audit row.
#[async_trait]
pub trait OperatorStore: Send + Sync {
    /// The apps that the store holds, sorted.
    async fn app_list(&self) -> Result<Vec<App>, StoreError>;

    /// Runs, newest first.
    async fn run_list(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError>;

    /// One run with journal, invocation and event.
    async fn run_detail(&self, run: RunId) -> Result<Option<RunDetail>, StoreError>;

    /// A part of the journal of a run, in order: `limit` rows, 1 to 1,000, from the one on that holds the fact `from`,
    /// the first being 0. No other row is read.
    async fn journal_list(
        &self,
        run: RunId,
        from: u64,
        limit: u32,
    ) -> Result<Option<JournalPage>, StoreError>;

    /// Effects with a [`Standing`], of an app or of one scope of it: oldest first, and behind them what was given up.
    async fn effect_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<EffectRow>, StoreError>;

    /// Events, newest first.
    async fn event_list(&self, filter: EventFilter) -> Result<Page<EventRow>, StoreError>;

    /// Signals that no run has used, oldest first. Of one scope: without those of the app as a whole.
    async fn signal_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<SignalRow>, StoreError>;

    /// Worker sessions that have not ended, newest report first.
    async fn session_list(&self, app: &App) -> Result<Vec<SessionRow>, StoreError>;

    /// The numbers of one app at one moment.
    async fn app_health(&self, app: &App) -> Result<AppHealth, StoreError>;

    /// How many runs were created in each slice of a span of time, by where they stand now; children and dry runs
    /// aside. Slices and states without runs are left out.
    async fn run_timeline(&self, span: RunSpan) -> Result<Vec<RunCount>, StoreError>;

    /// The store's own settings and state: what `doctor` shows.
    async fn store_check(&self) -> Result<Vec<StoreFact>, StoreError>;

    /// Audit rows of an app, or of one scope of it, newest first.
    async fn audit_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError>;
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where the next page begins; opaque.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A list without rows.
    #[must_use]
    pub const fn empty() -> Self {
        Self { rows: Vec::new(), next: None }
    }
}

/// Which runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFilter {
    /// Only of this app.
    pub app: Option<App>,
    /// Only of this scope.
    pub scope: Option<Scope>,
    /// Only of this workflow.
    pub workflow: Option<WorkflowKey>,
    /// Only in these states; none is all.
    pub states: Vec<RunState>,
    /// Only of this mode.
    pub mode: Option<Mode>,
    /// Only created at or after.
    pub since: Option<Timestamp>,
    /// Children of this run.
    pub parent: Option<RunId>,
    /// Children of any run too; without it, children are hidden unless their parent is named.
    pub children: bool,
    /// Only started by this event.
    pub event: Option<EventId>,
    /// Only started by an event with this tag. Children are started by none.
    pub tag: Option<String>,
    /// At most so many, 1 to 1,000.
    pub limit: u32,
    /// From the page before.
    pub cursor: Option<String>,
}

impl RunFilter {
    /// Whether it asks for a text that no store can keep, one with NUL: nothing fits it.
    #[must_use]
    pub fn fits_nothing(&self) -> bool {
        let texts = [
            self.app.as_ref().map(App::as_str),
            self.scope.as_ref().map(Scope::as_str),
            self.workflow.as_ref().map(WorkflowKey::as_str),
            self.tag.as_deref(),
        ];
        texts.into_iter().flatten().any(|text| !is_storable(text))
    }
}

/// A span of time, in slices of equal length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSpan {
    /// Only of this app.
    pub app: App,
    /// Only of this scope.
    pub scope: Option<Scope>,
    /// Created at or after.
    pub from: Timestamp,
    /// How long a slice is; taken as one microsecond at least.
    pub slice: Micros,
    /// How many there are, at most [`TIMELINE_MAX_SLICES`].
    pub slices: u32,
}

/// Slices of one timeline.
pub const TIMELINE_MAX_SLICES: u32 = 500;

impl RunSpan {
    /// The length of a slice, in microseconds, at least 1.
    #[must_use]
    pub const fn slice_micros(&self) -> i64 {
        let micros = self.slice.get();
        if micros < 1 { 1 } else { micros }
    }

    /// The end, itself not in the span.
    #[must_use]
    pub const fn until(&self) -> Timestamp {
        let slices =
            if self.slices > TIMELINE_MAX_SLICES { TIMELINE_MAX_SLICES } else { self.slices };
        let length = self.slice_micros().saturating_mul(slices as i64);
        Timestamp::from_micros(self.from.micros().saturating_add(length))
    }

    /// The slice that an instant falls into.
    #[must_use]
    pub fn slice_of(&self, at: Timestamp) -> Option<u32> {
        if at < self.from || at >= self.until() {
            return None;
        }
        u32::try_from(at.since(self.from).get() / self.slice_micros()).ok()
    }
}

/// Runs of one slice of a span that stand alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCount {
    /// Which slice, from 0.
    pub slice: u32,
    /// Where they stand now.
    pub state: RunState,
    /// How many.
    pub count: u64,
    /// The longest that one of them waited from its creation to its first claim; `None` where none was claimed.
    pub worst_lag: Option<Micros>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// The row, its result left null.
    pub run: Run,
    /// Revision of its version.
    pub version_revision: u64,
}

/// One run for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct RunDetail {
    /// The row.
    pub run: Run,
    /// Revision of its version.
    pub version_revision: u64,
    /// What started it.
    pub invocation: Invocation,
    /// The counters of its root run.
    pub budget: Budget,
    /// The whole journal; or why it cannot be read.
    pub journal: Result<Vec<JournalEntry>, RestoreInvalid>,
    /// The plan as JSON text.
    pub plan: String,
    /// Type and dedupe key of the event.
    pub event: Option<EventRow>,
    /// Its children, by the step that created them.
    pub children: Vec<GroupRow>,
    /// The group that it belongs to, if it is a child; and whether it may not be tried again since one above it has
    /// moved on.
    pub group: Option<(GroupRow, bool)>,
    /// The store's time.
    pub now: Timestamp,
}

/// A part of a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalPage {
    /// Whose run.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// In order; or why one of them cannot be read.
    pub rows: Result<Vec<JournalEntry>, RestoreInvalid>,
    /// How many facts the whole journal has.
    pub facts: u64,
}

impl JournalPage {
    /// Where the next page begins, if there is one.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        let last = self.rows.as_ref().ok()?.last()?;
        let behind = last.seq.saturating_add(last.facts.len() as u64);
        (behind < self.facts).then_some(behind)
    }
}

/// An effect that waits for a person, or for a worker to ask.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectRow {
    /// The run.
    pub run: RunId,
    /// Where.
    pub scope: Scope,
    /// Of which workflow.
    pub workflow: WorkflowKey,
    /// Where the run stands.
    pub run_state: RunState,
    /// The run's revision, for verbs.
    pub revision: u64,
    /// The effect.
    pub effect: OpenEffect,
    /// The store's time.
    pub now: Timestamp,
}

/// Which events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    /// Only of this app.
    pub app: Option<App>,
    /// Only of this scope.
    pub scope: Option<Scope>,
    /// Only of this type.
    pub kind: Option<String>,
    /// Only in this status.
    pub status: Option<EventStatus>,
    /// At most so many, 1 to 1,000.
    pub limit: u32,
    /// From the page before.
    pub cursor: Option<String>,
}

impl EventFilter {
    /// Whether it asks for a text that no store can keep, one with NUL: nothing fits it.
    #[must_use]
    pub fn fits_nothing(&self) -> bool {
        let texts = [
            self.app.as_ref().map(App::as_str),
            self.scope.as_ref().map(Scope::as_str),
            self.kind.as_deref(),
        ];
        texts.into_iter().flatten().any(|text| !is_storable(text))
    }
}

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventStatus {
    /// Its runs are not created yet.
    Pending,
    /// Its runs exist.
    Dispatched,
    /// Nobody listens to it.
    Unmatched,
    /// Dispatch failed and is tried again.
    Retrying,
    /// Dispatch failed for good.
    DeadLettered,
}

impl EventStatus {
    /// Every status.
    pub const ALL: &'static [Self] =
        &[Self::Pending, Self::Dispatched, Self::Unmatched, Self::Retrying, Self::DeadLettered];

    /// The word used in stores and views.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Dispatched => "dispatched",
            Self::Unmatched => "unmatched",
            Self::Retrying => "retrying",
            Self::DeadLettered => "dead_lettered",
        }
    }
}

/// An event in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// Its id.
    pub event: EventId,
    /// Where.
    pub scope: Scope,
    /// Its type.
    pub kind: String,
    /// Its key.
    pub dedupe_key: Option<String>,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    /// Where it stands.
    pub status: EventStatus,
    /// How many activations matched.
    pub matched: u32,
    /// Failed dispatches.
    pub attempts: u32,
    /// The last failure.
    pub error: Option<String>,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// Its runs.
    pub runs: Vec<RunId>,
    /// Whether its payload was emptied.
    pub is_expired: bool,
}

/// A signal that no run has used.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalRow {
    /// Where; none is app-wide.
    pub scope: Option<Scope>,
    /// What sort.
    pub kind: String,
    /// Which one.
    pub key: String,
    /// Its data.
    pub data: Value,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// The store's time.
    pub now: Timestamp,
}

/// A worker session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    /// Its id.
    pub session: SessionId,
    /// For people.
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
    /// Slots whose hook does not return.
    pub stuck: u32,
    /// Its last report.
    pub seen_at: Timestamp,
    /// The store's time.
    pub now: Timestamp,
}

impl SessionRow {
    /// Whether runs like this are for it, as far as mode and tree go.
    #[must_use]
    pub fn takes(&self, run: &Origin) -> bool {
        self.mode == run.mode && self.tree.is_none_or(|root| root == run.root)
    }
}

/// The numbers of one app at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AppHealth {
    /// The store's time.
    pub now: Timestamp,
    /// Runs by state.
    pub runs: Vec<(RunState, u64)>,
    /// Since when the oldest claimable run has been due.
    pub oldest_due: Option<Timestamp>,
    /// Dry runs that are due; only a dry-run worker takes them, and nothing else waits for them.
    pub dry_runs_due: u64,
    /// Runs that are due, by footprint hash: number, oldest. Without dry runs.
    pub due_by_footprint: Vec<(String, u64, Timestamp)>,
    /// Unsettled effects.
    pub unsettled_effects: u64,
    /// The oldest of them.
    pub oldest_unsettled: Option<Timestamp>,
    /// Effects that happened and lack an output that can be used.
    pub outputs_missing: u64,
    /// Effects that were given up without knowing.
    pub effects_given_up: u64,
    /// Failed runs with `RETRY_EXHAUSTED`.
    pub exhausted: u64,
    /// Events whose runs are not created yet.
    pub events_pending: u64,
    /// The oldest of them.
    pub oldest_pending_event: Option<Timestamp>,
    /// Events that failed for good and may still be redriven.
    pub events_dead_lettered: u64,
    /// Events that nobody listens to and that still have their payload.
    pub events_unmatched: u64,
    /// Workflows and scopes whose deletion has begun, at most 100.
    pub deleting: Vec<Place>,
    /// Trees of runs of which a part is deleted: a pruning or a deletion was stopped there.
    pub trees_half_deleted: u64,
}

/// One thing about a store that is as it should be, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFact {
    /// Of what.
    pub name: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub found: String,
    /// What it should be, or what to do.
    pub wanted: String,
}

/// Who did what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Where.
    pub scope: Scope,
    /// Store time.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What.
    pub verb: String,
    /// Why.
    pub reason: String,
    /// To which run, if to one.
    pub run: Option<RunId>,
    /// To which version, if to one; the run's, if to a run.
    pub version: Option<VersionId>,
    /// JSON.
    pub details: String,
}

/// What an effect in the list lacks. Lists and numbers go by it alone, so that they agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Nobody knows yet what became of it.
    Unexplained,
    /// It happened, and a person has to supply its output.
    OutputMissing,
    /// An operator gave it up without knowing. It stays: its run is the only trace of it.
    GivenUp,
}

impl Standing {
    /// What the effect of a run lacks. `None` where nothing is left to be done: it is settled, or its run was given
    /// up though it is known to have happened.
    #[must_use]
    pub const fn of(run: RunState, effect: EffectState) -> Option<Self> {
        match effect {
            EffectState::Marked | EffectState::Ambiguous => Some(Self::Unexplained),
            EffectState::AbandonedUnknown => Some(Self::GivenUp),
            EffectState::Succeeded => match run {
                RunState::NeedsAttention => Some(Self::OutputMissing),
                RunState::Queued
                | RunState::Running
                | RunState::Waiting
                | RunState::Succeeded
                | RunState::Failed
                | RunState::Canceled => None,
            },
            EffectState::Failed | EffectState::NotPerformed => None,
        }
    }
}

impl AppHealth {
    /// Counts effects of one standing; `oldest` is since when the oldest of them has been open.
    pub fn count_effects(&mut self, of: Standing, count: u64, oldest: Option<Timestamp>) {
        match of {
            Standing::Unexplained => {
                self.unsettled_effects = self.unsettled_effects.saturating_add(count);
                self.oldest_unsettled = self.oldest_unsettled.into_iter().chain(oldest).min();
            }
            Standing::OutputMissing => {
                self.outputs_missing = self.outputs_missing.saturating_add(count);
            }
            Standing::GivenUp => {
                self.effects_given_up = self.effects_given_up.saturating_add(count);
            }
        }
    }
}

/// What a step's effect is, for [`EffectRow`] in words.
impl EffectRow {
    /// What it lacks.
    #[must_use]
    pub const fn standing(&self) -> Option<Standing> {
        Standing::of(self.run_state, self.effect.state)
    }

    /// The step.
    #[must_use]
    pub const fn step(&self) -> &StepKey {
        &self.effect.step
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> EffectState {
        self.effect.state
    }
}
