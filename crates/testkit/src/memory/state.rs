//! What the store holds: plain tables, and the ways in which a run's row is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use surefoot_kernel_core::payload::Payload;
use surefoot_kernel_core::plan::SchedulePlan;
use surefoot_kernel_core::{
    Activation, App, AuditRow, Budget, ChildGroup, Commit, Committed, Delete, Dependency,
    EffectKey, EventId, EventStatus, Invocation, Phase, Place, Receipt, Rejection, RowInput, Run,
    RunId, RunState, Scope, SessionId, SessionReport, StepKey, StoreError, StoredVersion,
    Timestamp, TraceContext, VersionId, Wait, Wake, WorkflowKey, apply, decide_row,
};

use super::tasks::TaskEntry;

/// Children to which a cancel is carried on at once; recovery does the rest.
const CANCEL_AT_ONCE: usize = 100;

/// All tables. A transaction works on a copy of them.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) runs: BTreeMap<RunId, RunEntry>,
    pub(super) groups: BTreeMap<(RunId, StepKey), GroupEntry>,
    /// Counters of root runs.
    pub(super) budgets: BTreeMap<RunId, Budget>,
    pub(super) events: BTreeMap<EventId, EventEntry>,
    pub(super) dedupe: BTreeMap<DedupeKey, EventId>,
    pub(super) versions: BTreeMap<VersionId, VersionEntry>,
    pub(super) workflows: BTreeMap<WorkflowId, WorkflowEntry>,
    pub(super) signals: BTreeMap<SignalKey, SignalEntry>,
    pub(super) sessions: BTreeMap<SessionId, SessionEntry>,
    pub(super) claims: BTreeMap<(SessionId, u64), Vec<RunId>>,
    pub(super) audit: Vec<(App, AuditRow)>,
    /// The application's own table.
    pub(super) table: BTreeMap<String, String>,
    /// What is being deleted, and who wants it.
    pub(super) deleting: BTreeMap<Place, Delete>,
    pub(super) tasks: BTreeMap<(App, EffectKey), TaskEntry>,
    /// Events whose dispatch fails until they are mended.
    pub(super) broken: BTreeSet<EventId>,
}

/// The children of one step.
#[derive(Debug, Clone)]
pub(super) struct GroupEntry {
    pub(super) group: ChildGroup,
    /// By index.
    pub(super) children: Vec<RunId>,
    /// Indexes of those that are held back.
    pub(super) held: BTreeSet<u32>,
    /// The next index to which a cancel is carried on; only while it is on its way.
    pub(super) cancel_from: Option<usize>,
}

/// Owner, boundary, type and key of an event.
pub(super) type DedupeKey = (App, Scope, String, String);
/// Owner, boundary and key of a workflow.
pub(super) type WorkflowId = (App, Scope, WorkflowKey);

#[derive(Debug, Clone)]
pub(super) struct RunEntry {
    pub(super) run: Run,
    pub(super) invocation: Arc<Invocation>,
    pub(super) journal: Vec<JournalRow>,
    /// The signal that ended the open step's last wait.
    pub(super) woken_by: Option<SignalKey>,
}

#[derive(Debug, Clone)]
pub(super) struct JournalRow {
    pub(super) seq: u64,
    pub(super) count: u64,
    pub(super) generation: u64,
    pub(super) at: Timestamp,
    pub(super) facts: Arc<str>,
}

#[derive(Debug, Clone)]
pub(super) struct EventEntry {
    pub(super) app: App,
    pub(super) scope: Scope,
    pub(super) kind: String,
    pub(super) data: Arc<Payload>,
    pub(super) context: Arc<Payload>,
    pub(super) payload_hash: String,
    pub(super) authorization: Option<Value>,
    pub(super) trace: Option<TraceContext>,
    pub(super) dedupe_key: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) target: Option<WorkflowKey>,
    pub(super) occurred_at: Timestamp,
    pub(super) recorded_at: Timestamp,
    /// What matched when it was recorded.
    pub(super) matched: u32,
    /// Goes with the payload.
    pub(super) deliveries: Vec<Delivery>,
    pub(super) runs: Vec<RunId>,
    pub(super) status: EventStatus,
    pub(super) attempts: u32,
    pub(super) error: Option<String>,
    /// Not dispatched before.
    pub(super) due_at: Timestamp,
    /// When it was dispatched, or dead-lettered.
    pub(super) ended_at: Option<Timestamp>,
    /// Whether its payload was emptied.
    pub(super) is_expired: bool,
}

/// One run that an event starts.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) workflow: WorkflowKey,
    pub(super) activation: Activation,
    pub(super) version: VersionId,
    pub(super) authorization: Option<Value>,
}

#[derive(Debug, Clone)]
pub(super) struct VersionEntry {
    /// Its `active` is filled in when it is read.
    pub(super) stored: Arc<StoredVersion>,
    pub(super) footprint: String,
    pub(super) activations: Vec<Activation>,
    pub(super) authorization: Option<Value>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct WorkflowEntry {
    pub(super) active: Option<VersionId>,
    /// By revision, from 1.
    pub(super) versions: Vec<VersionId>,
    /// Of the active version.
    pub(super) activations: Vec<Activation>,
    /// Activation keys of any version that was live.
    pub(super) known: BTreeSet<String>,
    /// Of the schedules of the active version, since when they stand like this.
    pub(super) scheduled: BTreeMap<String, (SchedulePlan, Timestamp)>,
    /// Activation keys that an operator disabled: kept whatever is published.
    pub(super) disabled: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SignalKey {
    pub(super) app: App,
    /// None is app-wide.
    pub(super) scope: Option<Scope>,
    pub(super) kind: String,
    pub(super) key: String,
}

#[derive(Debug, Clone)]
pub(super) struct SignalEntry {
    pub(super) data: Arc<Payload>,
    pub(super) recorded_at: Timestamp,
    /// When a run recorded an outcome on it.
    pub(super) spent_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub(super) struct SessionEntry {
    pub(super) report: SessionReport,
    pub(super) seen_at: Timestamp,
}

impl SignalKey {
    /// The key of the signal that ends a run's wait.
    pub(super) fn of(run: &Run, on: &Dependency) -> Self {
        let origin = &run.origin;
        Self {
            app: origin.app.clone(),
            scope: (!on.is_app_wide()).then(|| origin.scope.clone()),
            kind: on.kind().to_owned(),
            key: on.key().to_owned(),
        }
    }
}

impl State {
    /// The wake that a run waits for, if it has occurred; with the signal that it was, if one.
    pub(super) fn occurred(&self, run: &Run) -> Option<(Option<SignalKey>, Wake)> {
        let Phase::Waiting(Wait { on: Some(on), .. }) = &run.phase else { return None };
        if let Some(step) = on.children_of() {
            let group = self.groups.get(&(run.id, step));
            let is_over = group.is_none_or(|entry| entry.group.is_over());
            return is_over.then_some((None, Wake::Children));
        }
        let key = SignalKey::of(run, on);
        let signal = self.signals.get(&key)?;
        Some((Some(key), Wake::Signal(signal.data.value().clone())))
    }

    /// Writes a run as a caller decided it.
    pub(super) fn commit(
        &mut self,
        commit: &Commit,
        now: Timestamp,
    ) -> Result<Committed, StoreError> {
        let run = commit.before.run;
        let entry = self.runs.get(&run).ok_or(StoreError::LeaseLost)?;
        commit.before.check(&entry.run)?;
        self.check_revival(&entry.run, &commit.after)?;
        if let Some(charge) = &commit.charge {
            let budget = self.budgets.entry(entry.run.origin.root).or_default();
            budget.charge(charge).map_err(StoreError::BudgetExceeded)?;
        }
        let mut commit = commit.clone();
        // A renewal since the run was read is not a write of the run: the commit must not undo it.
        if let (Phase::Running { lease: stored, .. }, Phase::Running { lease, .. }) =
            (&entry.run.phase, &mut commit.after.phase)
        {
            *lease = stored.clone();
        }
        self.place_revived(&entry.run, &mut commit.after);
        let mut stored = self.write(&commit, now);
        if let Some((key, wake)) = self.occurred(&stored) {
            let input = RowInput::Wake { wake, at_once: true };
            if let (Ok(facts), Some(entry)) =
                (decide_row(&stored, input, now), self.runs.get_mut(&run))
            {
                stored = facts.iter().fold(stored, apply);
                entry.run = stored.clone();
                entry.woken_by = key;
            }
        }
        if stored.cancel.is_some() {
            self.cancel_children(&stored.origin.app, Some(run), CANCEL_AT_ONCE, now);
        }
        Ok(Committed { receipt: Receipt::attest(&stored), run: stored, now })
    }

    /// Writes what the core decides on a row alone.
    pub(super) fn row(
        &mut self,
        run: RunId,
        input: RowInput,
        now: Timestamp,
    ) -> Result<Option<Run>, Rejection> {
        let Some(entry) = self.runs.get(&run) else { return Ok(None) };
        let facts = decide_row(&entry.run, input, now)?;
        if facts.is_empty() {
            return Ok(Some(entry.run.clone()));
        }
        let commit = Commit::new(&entry.run, &facts);
        Ok(Some(self.write(&commit, now)))
    }

    /// Wakes a waiting run, if it is still one: by its signal if that exists, else by its deadline.
    pub(super) fn wake(&mut self, run: RunId, now: Timestamp) -> bool {
        let Some(entry) = self.runs.get(&run) else { return false };
        let (key, wake) = self.occurred(&entry.run).unwrap_or((None, Wake::Deadline));
        let woken =
            matches!(self.row(run, RowInput::Wake { wake, at_once: false }, now), Ok(Some(_)));
        if let (true, Some(entry)) = (woken, self.runs.get_mut(&run)) {
            entry.woken_by = key;
        }
        woken
    }

    /// Row, journal, audit, spent signal and family of one write.
    pub(super) fn write(&mut self, commit: &Commit, now: Timestamp) -> Run {
        let after = commit.after.clone();
        let Some(entry) = self.runs.get_mut(&after.id) else { return after };
        if let Some(journal) = &commit.journal {
            entry.journal.push(JournalRow {
                seq: journal.seq,
                count: journal.count,
                generation: after.generation,
                at: now,
                facts: journal.facts.as_str().into(),
            });
        }
        if let Some(key) = entry.woken_by.take_if(|_| !is_open(&entry.run, &after))
            && entry.run.resume.as_ref().is_some_and(|it| commit.outcomes.contains(&it.step))
            && let Some(signal) = self.signals.get_mut(&key)
        {
            signal.spent_at.get_or_insert(now);
        }
        let before = std::mem::replace(&mut entry.run, after.clone());
        if let Some(audit) = &commit.audit {
            let row = AuditRow {
                scope: after.origin.scope.clone(),
                at: now,
                actor: audit.actor.clone(),
                verb: audit.verb.clone(),
                reason: audit.reason.clone(),
                run: Some(after.id),
                version: Some(after.origin.version),
                details: audit.details.clone(),
            };
            self.audit.push((after.origin.app.clone(), row));
        }
        if before.state() == RunState::Failed && after.state() == RunState::Queued {
            self.retry_tasks(after.id);
        }
        self.family_moved(&before, &after, now);
        after
    }
}

/// Whether the step whose wait ended has no outcome yet: it is still resuming, or waits again.
fn is_open(before: &Run, after: &Run) -> bool {
    let Some(resumed) = &before.resume else { return true };
    let resumes = after.resume.as_ref().is_some_and(|resume| resume.step == resumed.step);
    let waits = matches!(&after.phase, Phase::Waiting(wait) if wait.step == resumed.step);
    resumes || waits
}
