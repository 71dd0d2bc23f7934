//! Claims, loads, renewals and recovery.

use std::collections::BTreeSet;
use std::sync::Arc;

use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    App, Budget, CLAIM_MAX_BYTES, ClaimRequest, Coming, CreateDryRun, EmitError, Invocation,
    JournalEntry, JournalPage, Lease, LoadRequest, Micros, Mode, Phase, Plans, Receipt, Recovered,
    RenewRequest, Renewed, RestoreInvalid, RowInput, Run, RunId, RunState, Scan, SessionId,
    SessionReport, Stamp, Stored, TakeOverRequest, Timestamp, Wait, WorkDue, actor_of, decide_row,
};

use super::state::{JournalRow, RunEntry, SessionEntry, State};

impl State {
    pub(super) fn run_claim(&mut self, request: &ClaimRequest, now: Timestamp) -> Vec<Stored> {
        let nonce = (request.session, request.nonce);
        let before = self.claims.get(&nonce).into_iter().flatten();
        let is_held = |run: &Run| run.lease().is_some_and(|lease| lease.owner == request.session);
        let held: Vec<RunId> = before
            .filter_map(|run| self.runs.get(run))
            .map(|entry| &entry.run)
            .filter(|run| is_held(run))
            .map(|run| run.id)
            .collect();
        if !held.is_empty() {
            return held.into_iter().filter_map(|run| self.claimed(run, now)).collect();
        }
        let claim = RowInput::Claim { lease: request.lease(now) };
        let mut due: Vec<(Timestamp, RunId)> = self
            .runs
            .values()
            .map(|entry| &entry.run)
            .filter(|run| fits(run, request) && decide_row(run, claim.clone(), now).is_ok())
            .filter_map(|run| Some((run.claimable_at()?, run.id)))
            .collect();
        due.sort_unstable();
        due.truncate(usize::try_from(request.limit).unwrap_or(usize::MAX));
        let begin = |(_, run)| self.begin(run, request.lease(now), &request.plans, now);
        let claimed: Vec<RunId> = due.into_iter().filter_map(begin).collect();
        self.claims.insert(nonce, claimed.clone());
        claimed.into_iter().filter_map(|run| self.claimed(run, now)).collect()
    }

    /// A worker has the run from now on, if it may be claimed.
    pub(super) fn begin(
        &mut self,
        run: RunId,
        lease: Lease,
        plans: &Plans,
        now: Timestamp,
    ) -> Option<RunId> {
        let entry = self.runs.get(&run)?;
        let invocation = self.invocation_of(entry);
        let invocation = is_small(entry, &invocation).then_some(&invocation);
        let begun = plans.begin(Coming::of(&entry.run, invocation), lease, now).ok()?;
        Some(self.write(&begun.commit, now).id)
    }

    /// As a claim brings it.
    fn claimed(&self, run: RunId, now: Timestamp) -> Option<Stored> {
        let mut stored = self.run_load(LoadRequest { run, after: None }, now)?;
        let is_small =
            |it: &Invocation| self.runs.get(&run).is_some_and(|entry| is_small(entry, it));
        if !stored.invocation.as_ref().is_some_and(is_small) {
            (stored.invocation, stored.journal) = (None, Ok(Vec::new()));
        }
        Some(stored)
    }

    pub(super) fn dry_run_create(
        &mut self,
        create: &CreateDryRun,
        now: Timestamp,
    ) -> Result<Run, EmitError> {
        if let Some(entry) = self.runs.get(&create.id) {
            return Ok(entry.run.clone());
        }
        let workflow = Some(&create.workflow);
        if let Some(place) = self.being_deleted(&create.app, &create.scope, workflow) {
            return Err(EmitError::BeingDeleted { place });
        }
        let (run, event) = (create.run(now), &create.event);
        let invocation = Invocation {
            trigger: event.data.value().clone(),
            context: event.context.value().clone(),
            actor: actor_of(event.authorization.as_ref()),
            trace: event.trace.clone(),
            ..Invocation::default()
        };
        let version = self.versions.get(&create.version);
        let caps = version.map(|version| version.stored.budget.clone()).unwrap_or_default();
        self.budgets.insert(run.id, Budget::of_caps(&caps));
        let entry = RunEntry {
            run: run.clone(),
            invocation: Arc::new(invocation),
            journal: Vec::new(),
            woken_by: None,
        };
        self.runs.insert(run.id, entry);
        Ok(run)
    }

    pub(super) fn run_load(&self, request: LoadRequest, now: Timestamp) -> Option<Stored> {
        let entry = self.runs.get(&request.run)?;
        Some(Stored {
            run: entry.run.clone(),
            invocation: request.after.is_none().then(|| self.invocation_of(entry)),
            journal: journal_after(entry, request.after.unwrap_or(0)),
            receipt: Receipt::attest(&entry.run),
            now,
        })
    }

    pub(super) fn journal_list(&self, run: RunId, from: u64, limit: u32) -> Option<JournalPage> {
        self.runs.get(&run).map(|entry| journal_page(entry, from, limit))
    }

    pub(super) fn run_take_over(
        &mut self,
        request: TakeOverRequest,
        now: Timestamp,
    ) -> Option<Run> {
        let until = now.plus(request.lease);
        let lease = Lease { owner: request.session, until, length: request.lease };
        let generation = request.generation;
        match self.row(request.run, RowInput::TakeOver { generation, lease }, now) {
            Ok(run) => run,
            // It was claimed since, so its generation was raised already.
            Err(_) => self.runs.get(&request.run).map(|entry| entry.run.clone()),
        }
    }

    pub(super) fn run_open(&self, app: &App, runs: &[RunId]) -> Vec<RunId> {
        let is_open = |id: &&RunId| {
            let run = self.runs.get(id).map(|entry| &entry.run);
            run.is_some_and(|run| {
                let goes_on =
                    matches!(run.state(), RunState::Queued | RunState::Running | RunState::Waiting);
                goes_on && run.origin.app == *app
            })
        };
        runs.iter().filter(is_open).copied().collect()
    }

    pub(super) fn cancel_list(&self, held: &[Stamp]) -> Vec<RunId> {
        let is_canceled = |stamp: &&Stamp| {
            let run = self.runs.get(&stamp.run).map(|entry| &entry.run);
            run.is_some_and(|run| run.generation == stamp.generation && run.cancel.is_some())
        };
        held.iter().filter(is_canceled).map(|stamp| stamp.run).collect()
    }

    pub(super) fn lease_renew(
        &mut self,
        request: &RenewRequest,
        stamp: Stamp,
        now: Timestamp,
    ) -> Renewed {
        let Some(entry) = self.runs.get_mut(&stamp.run) else { return Renewed::Lost };
        let canceled = entry.run.cancel.is_some();
        if entry.run.generation != stamp.generation {
            return Renewed::Lost;
        }
        match &mut entry.run.phase {
            Phase::Running { lease, .. } if lease.owner == request.session => {
                lease.until = now.plus(request.lease);
                lease.length = request.lease;
                Renewed::Held { until: lease.until, canceled }
            }
            Phase::Running { .. }
            | Phase::Queued { .. }
            | Phase::Waiting(_)
            | Phase::NeedsAttention(_)
            | Phase::Succeeded { .. }
            | Phase::Failed { .. }
            | Phase::Canceled { .. } => Renewed::Lost,
        }
    }

    pub(super) fn run_recover(&mut self, scan: &Scan, now: Timestamp) -> Recovered {
        let limit = usize::try_from(scan.limit).unwrap_or(usize::MAX);
        let of_app = |entry: &&RunEntry| entry.run.origin.app == scan.app;
        let mut wakes: Vec<(Timestamp, RunId)> = Vec::new();
        let mut gone: Vec<RunId> = Vec::new();
        for entry in self.runs.values().filter(of_app) {
            if let Some(since) = self.due_since(&entry.run, now) {
                wakes.push((since, entry.run.id));
            } else if entry.run.cancel.is_some()
                && decide_row(&entry.run, RowInput::LeaseGone, now).is_ok()
            {
                gone.push(entry.run.id);
            }
        }
        wakes.sort_unstable();
        let more = wakes.len() > limit || gone.len() > limit;
        let mut recovered = Recovered { more, ..Recovered::default() };
        for (_, run) in wakes.into_iter().take(limit) {
            if self.wake(run, now) {
                recovered.woken.push(run);
            }
        }
        for run in gone.into_iter().take(limit) {
            if matches!(self.row(run, RowInput::LeaseGone, now), Ok(Some(_))) {
                recovered.finalised.push(run);
            }
        }
        let (canceled, more) = self.cancel_children(&scan.app, None, limit, now);
        recovered.finalised.extend(canceled);
        recovered.more |= more;
        recovered
    }

    /// Since when a waiting run should have been awake.
    fn due_since(&self, run: &Run, now: Timestamp) -> Option<Timestamp> {
        let Phase::Waiting(Wait { deadline, since, .. }) = &run.phase else { return None };
        if self.occurred(run).is_some() {
            return Some(*since);
        }
        deadline.filter(|deadline| *deadline <= now)
    }

    pub(super) fn work_due(&self, app: &App, mode: Mode, now: Timestamp) -> WorkDue {
        let of_app =
            self.runs.values().map(|entry| &entry.run).filter(|run| run.origin.app == *app);
        let is_gone =
            |run: &Run| run.cancel.is_some() && decide_row(run, RowInput::LeaseGone, now).is_ok();
        let recover = of_app.clone().any(|run| self.due_since(run, now).is_some() || is_gone(run));
        let lease =
            Lease { owner: SessionId::from_bytes([0; 16]), until: now, length: Micros::ZERO };
        let claim = RowInput::Claim { lease };
        let due: BTreeSet<&String> = of_app
            .filter(|run| run.origin.mode == mode && decide_row(run, claim.clone(), now).is_ok())
            .map(|run| &run.origin.footprint)
            .collect();
        let footprints = self.footprint_list(app);
        let is_due = |footprint: &&Footprint| due.contains(&footprint.hash());
        WorkDue {
            recover: recover || self.cancels_are_pending(app),
            dispatch: self.events.values().any(|entry| entry.is_due(app, now)),
            claimable: footprints.iter().filter(is_due).cloned().collect(),
            footprints,
        }
    }

    pub(super) fn footprint_list(&self, app: &App) -> Vec<Footprint> {
        let live = self.runs.values().map(|entry| &entry.run);
        let live = live.filter(|run| run.origin.app == *app && !run.state().is_terminal());
        let mut footprints: Vec<Footprint> = Vec::new();
        for run in live {
            if let Some(version) = self.versions.get(&run.origin.version)
                && !footprints.contains(&version.stored.footprint)
            {
                footprints.push(version.stored.footprint.clone());
            }
        }
        footprints
    }

    pub(super) fn session_report(&mut self, report: SessionReport, now: Timestamp) {
        self.sessions.insert(report.session, SessionEntry { report, seen_at: now });
    }
}

fn fits(run: &Run, request: &ClaimRequest) -> bool {
    let origin = &run.origin;
    origin.app == request.app
        && origin.mode == request.mode
        && request.footprints.contains(&origin.footprint)
        && request.tree.is_none_or(|root| root == origin.root)
}

pub(super) fn journal_page(entry: &RunEntry, from: u64, limit: u32) -> JournalPage {
    let read = |row: &JournalRow| JournalEntry::read(row.seq, row.generation, row.at, &row.facts);
    let later = |row: &&JournalRow| row.seq.saturating_add(row.count) > from;
    let limit = usize::try_from(limit.clamp(1, 1_000)).unwrap_or(1);
    let rows = entry.journal.iter().filter(later).take(limit).map(read).collect();
    let (app, scope) = (entry.run.origin.app.clone(), entry.run.origin.scope.clone());
    JournalPage { app, scope, rows, facts: entry.run.seq }
}

pub(super) fn journal_after(
    entry: &RunEntry,
    after: u64,
) -> Result<Vec<JournalEntry>, RestoreInvalid> {
    let read = |row: &JournalRow| JournalEntry::read(row.seq, row.generation, row.at, &row.facts);
    let later = |row: &&JournalRow| row.seq.saturating_add(row.count) > after;
    entry.journal.iter().filter(later).map(read).collect()
}

/// Whether a claim brings the run whole.
fn is_small(entry: &RunEntry, with: &Invocation) -> bool {
    let bytes = with.trigger.to_string().len() + with.context.to_string().len();
    bytes as u64 <= CLAIM_MAX_BYTES && entry.run.journal_bytes <= CLAIM_MAX_BYTES
}
