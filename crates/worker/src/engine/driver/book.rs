//! What is held in memory of one run: its folded state, and the facts that are not durable yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use surefoot_kernel_core::plan::{Footprint, Plan};
use surefoot_kernel_core::{
    Clock, Committed, Fact, Held, Invocation, Micros, Phase, Receipt, RestoreInvalid, Stamp,
    StepKey, Taken, Timestamp, Todo,
};
use surefoot_language::Loaded;

use super::output::weight;
use crate::engine::pace::{minus, plus};

/// Facts wait at most this long for a commit that takes them along.
pub(super) const PENDING_MAX_AGE: Micros = Micros::from_secs(1);
const PENDING_MAX_FACTS: usize = 100;
const PENDING_MAX_BYTES: usize = 256 * 1024;

/// A plan, and what runs it.
pub(crate) struct LoadedPlan<Tx> {
    pub(crate) plan: Arc<Plan>,
    pub(super) footprint: String,
    pub(super) bindings: Arc<BTreeMap<String, BTreeMap<String, String>>>,
    pub(super) module: Arc<dyn Loaded<Tx>>,
}

impl<Tx> LoadedPlan<Tx> {
    pub(super) fn new(plan: Plan, module: Arc<dyn Loaded<Tx>>) -> Self {
        let footprint = Footprint::hash(&plan.footprint);
        Self { footprint, bindings: Arc::new(plan.bindings.clone()), plan: Arc::new(plan), module }
    }
}

/// The store's time: its last answer, plus what this process has measured since.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreTime {
    said: Timestamp,
    asked: Micros,
    heard: Micros,
}

impl StoreTime {
    /// What the store said to a question that was asked and answered then.
    pub(super) const fn new(said: Timestamp, (asked, heard): (Micros, Micros)) -> Self {
        Self { said, asked, heard }
    }

    /// How long ago a time of the store's was, at most: however late its answer came.
    pub(super) fn since_at_most(self, at: Timestamp, clock: &dyn Clock) -> Micros {
        plus(self.said.since(at), minus(clock.monotonic(), self.asked))
    }

    /// What it is at an instant of this process.
    pub(super) fn at(self, instant: Micros) -> Timestamp {
        self.said.plus(minus(instant, self.heard))
    }
}

/// Facts that are not durable yet. They are applied in memory already.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) facts: Vec<Fact>,
    bytes: usize,
    since: Micros,
}

impl Pending {
    pub(super) const fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// When they may wait no longer.
    pub(super) fn due_at(&self) -> Option<Micros> {
        (!self.is_empty()).then(|| plus(self.since, PENDING_MAX_AGE))
    }

    pub(super) fn is_due(&self, now: Micros) -> bool {
        let is_old = self.due_at().is_some_and(|due| due <= now);
        is_old || self.facts.len() >= PENDING_MAX_FACTS || self.bytes >= PENDING_MAX_BYTES
    }

    fn add(&mut self, facts: Vec<Fact>, now: Micros) {
        if self.facts.is_empty() {
            self.since = now;
            self.bytes = 0;
        }
        self.bytes += facts.iter().map(weight_of).sum::<usize>();
        self.facts.extend(facts);
    }
}

/// About how many bytes a lazy fact adds to the journal.
fn weight_of(fact: &Fact) -> usize {
    let payload = match fact {
        Fact::InputsComputed { inputs } => weight(inputs),
        Fact::StepCompleted { output, .. } => weight(output),
        Fact::ValuesResolved { values, .. } => values.iter().map(|(_, value)| weight(value)).sum(),
        Fact::BranchTaken { taken: Taken::Items(items), .. } => items.iter().map(weight).sum(),
        Fact::BranchTaken { .. }
        | Fact::Charged(_)
        | Fact::StepPlanned { .. }
        | Fact::CallMarked { .. }
        | Fact::OutcomeUnknown { .. }
        | Fact::NothingHappened { .. }
        | Fact::OutputRefused { .. }
        | Fact::StepFailed { .. }
        | Fact::DeadlineSet { .. }
        | Fact::CancelRequested(_)
        | Fact::AttentionCalled { .. }
        | Fact::ReconcileAsked { .. }
        | Fact::Retried
        | Fact::Ended { .. }
        | Fact::Claimed { .. }
        | Fact::TakenOver { .. }
        | Fact::FenceRaised
        | Fact::Released { .. }
        | Fact::Requeued { .. }
        | Fact::Parked { .. }
        | Fact::Woken { .. } => 0,
    };
    payload + 100
}

/// A run under lease.
pub(super) struct Book<Tx> {
    pub(super) plan: Arc<LoadedPlan<Tx>>,
    /// With all facts, durable or not.
    pub(super) held: Held,
    /// The stored row.
    pub(super) before: Stamp,
    pub(super) receipt: Receipt,
    pub(super) pending: Pending,
    pub(super) time: StoreTime,
    pub(super) rejections: u32,
    invocation: Option<Arc<Invocation>>,
}

impl<Tx> Book<Tx> {
    /// A run as it was read.
    pub(super) fn new(
        plan: Arc<LoadedPlan<Tx>>,
        held: Held,
        receipt: Receipt,
        time: StoreTime,
    ) -> Self {
        let before = held.run.stamp();
        let pending = Pending::default();
        Self { plan, held, before, receipt, pending, time, rejections: 0, invocation: None }
    }

    pub(super) fn now(&self, clock: &dyn Clock) -> Timestamp {
        self.time.at(clock.monotonic())
    }

    /// What started the run; copied once, since it may be large.
    pub(super) fn invocation(&mut self) -> Arc<Invocation> {
        let held = &self.held;
        self.invocation.get_or_insert_with(|| Arc::new(held.cursor.invocation().clone())).clone()
    }

    pub(super) fn has_open_mark(&self, step: &StepKey) -> bool {
        self.marked_at(step).is_some()
    }

    /// When the open mark of this step was decided.
    pub(super) fn marked_at(&self, step: &StepKey) -> Option<Timestamp> {
        match &self.held.run.phase {
            Phase::Running { todo: Todo::Reconcile(effect), .. } if effect.step == *step => {
                Some(effect.since)
            }
            Phase::Running { .. }
            | Phase::Queued { .. }
            | Phase::Waiting(_)
            | Phase::NeedsAttention(_)
            | Phase::Succeeded { .. }
            | Phase::Failed { .. }
            | Phase::Canceled { .. } => None,
        }
    }

    /// Applies facts that need not be durable yet.
    pub(super) fn accept(&mut self, facts: Vec<Fact>, now: Micros) -> Result<(), RestoreInvalid> {
        if facts.is_empty() {
            return Ok(());
        }
        self.apply(&facts)?;
        self.pending.add(facts, now);
        Ok(())
    }

    /// Applies facts whose commit begins now. What a commit does not write is read again and decided again.
    pub(super) fn go_on(&mut self, facts: Vec<Fact>) -> Result<(), RestoreInvalid> {
        self.apply(&facts)?;
        self.pending.facts.extend(facts);
        Ok(())
    }

    fn apply(&mut self, facts: &[Fact]) -> Result<(), RestoreInvalid> {
        self.fold(facts)?;
        facts.iter().for_each(|fact| self.held.run.apply(fact));
        Ok(())
    }

    /// Whether it is as the store has it, as far as this worker has heard.
    pub(super) const fn is_settled(&self) -> bool {
        self.held.run.seq == self.before.seq
    }

    /// The store has written these facts, which were not applied yet, and everything before.
    pub(super) fn committed(
        &mut self,
        committed: Committed,
        facts: &[Fact],
        span: (Micros, Micros),
    ) -> Result<(), RestoreInvalid> {
        self.fold(facts)?;
        self.before = committed.run.stamp();
        self.receipt = committed.receipt;
        self.time = StoreTime::new(committed.now, span);
        self.held.run = committed.run;
        Ok(())
    }

    /// Moves the position alone.
    fn fold(&mut self, facts: &[Fact]) -> Result<(), RestoreInvalid> {
        for fact in facts {
            if matches!(fact, Fact::InputsComputed { .. }) {
                self.invocation = None;
            }
            self.held.cursor.advance(&self.plan.plan, fact)?;
        }
        Ok(())
    }
}
