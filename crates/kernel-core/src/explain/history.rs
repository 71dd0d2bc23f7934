//! What the journal says of each step.

use std::collections::BTreeMap;

use crate::{
    Code, EffectState, End, Fact, Failure, JournalEntry, Run, SaidBy, StepCharge, StepKey, Taken,
    Timestamp,
};

/// The journal, by step.
#[derive(Debug, Default)]
pub(super) struct History<'j> {
    steps: BTreeMap<&'j str, Recorded<'j>>,
    /// When the run came to the open step: the time of the last outcome before it.
    pub(super) arrived: Option<Timestamp>,
    /// Whether anything but a cancel request was recorded after the last outcome.
    pub(super) is_touched_since: bool,
    /// The `succeed` step that ended the run.
    pub(super) succeeded_at: Option<&'j StepKey>,
    /// The row with the last outcome.
    outcome: Option<Outcome>,
}

/// The row of the journal that holds the last outcome.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    seq: u64,
    generation: u64,
    /// A person said so: no worker held the run.
    is_by_person: bool,
    /// The run ended in the same commit.
    ended: bool,
}

/// What the journal says of one step.
#[derive(Debug, Default, Clone)]
pub(super) struct Recorded<'j> {
    /// When the run came to it.
    pub(super) started: Option<Timestamp>,
    /// The last row that speaks of it.
    pub(super) last: Option<Timestamp>,
    /// The branch or items that it took.
    pub(super) taken: Option<&'j Taken>,
    /// Whose word its outcome is, if it has one.
    pub(super) completed: Option<SaidBy>,
    /// Why it failed for good, until a retry.
    pub(super) failed: Option<&'j Failure>,
    /// Whose word that is.
    pub(super) failed_by: Option<SaidBy>,
    /// Why it failed for good, where its `catch` went on: its outcome, which no retry undoes.
    pub(super) caught: Option<&'j Failure>,
    /// What became of its effect, where a call was marked.
    pub(super) effect: Option<EffectState>,
}

impl<'j> History<'j> {
    /// Folds the journal. Never fails: what does not fit the plan is the cursor's business.
    pub(super) fn of(run: &Run, journal: &'j [JournalEntry]) -> Self {
        let mut history = Self { arrived: run.started_at, ..Self::default() };
        for entry in journal {
            for fact in &entry.facts {
                history.take(fact, entry.at);
                history.note_outcome(fact, entry);
            }
        }
        history
    }

    /// What is recorded of a step.
    pub(super) fn of_step(&self, step: &StepKey) -> Option<&Recorded<'j>> {
        self.steps.get(step.as_str())
    }

    fn take(&mut self, fact: &'j Fact, at: Timestamp) {
        match fact {
            Fact::InputsComputed { .. } => self.moved_on(at),
            Fact::BranchTaken { step, taken } => {
                self.step(step, at).taken = Some(taken);
                self.moved_on(at);
            }
            Fact::StepCompleted { step, by, .. } => {
                let recorded = self.step(step, at);
                recorded.completed = Some(*by);
                // Only a marked call has an effect state in the journal.
                if recorded.effect.is_some() {
                    recorded.effect = Some(EffectState::Succeeded);
                }
                self.moved_on(at);
            }
            Fact::CallMarked { step, .. } => self.settle(step, at, Some(EffectState::Marked)),
            Fact::OutcomeUnknown { step, .. } => {
                self.settle(step, at, Some(EffectState::Ambiguous));
            }
            Fact::NothingHappened { step, .. } => {
                self.settle(step, at, Some(EffectState::NotPerformed));
            }
            Fact::OutputRefused { step, .. } => {
                self.settle(step, at, Some(EffectState::Succeeded));
            }
            Fact::StepFailed { step, error, effect, by, caught } => {
                self.is_touched_since = true;
                let recorded = self.step(step, at);
                recorded.effect = effect.or(recorded.effect);
                (recorded.failed, recorded.failed_by) = (Some(error), Some(*by));
                if *caught {
                    recorded.caught = Some(error);
                    self.moved_on(at);
                }
            }
            Fact::Charged(StepCharge { step, .. })
            | Fact::ValuesResolved { step, .. }
            | Fact::DeadlineSet { step, .. }
            | Fact::ReconcileAsked { step } => {
                self.step(step, at);
                self.is_touched_since = true;
            }
            Fact::StepPlanned { step, .. } => {
                self.step(step, at);
                self.moved_on(at);
            }
            Fact::AttentionCalled { .. } => self.is_touched_since = true,
            Fact::Retried => self.retried(),
            Fact::Ended { end, .. } => {
                if let End::Succeeded { step: Some(step), .. } = end {
                    self.step(step, at);
                    self.succeeded_at = Some(step);
                }
            }
            // A request moves nothing, and the others are never in a journal.
            Fact::CancelRequested(_)
            | Fact::Claimed { .. }
            | Fact::TakenOver { .. }
            | Fact::FenceRaised
            | Fact::Released { .. }
            | Fact::Requeued { .. }
            | Fact::Parked { .. }
            | Fact::Woken { .. } => {}
        }
    }

    /// Whether the run ended in the commit of its last outcome: then nobody came to the step behind it.
    pub(super) fn ended_with_outcome(&self) -> bool {
        self.outcome.is_some_and(|outcome| outcome.ended)
    }

    /// Whether a worker held the run after its last outcome, as far as the journal can tell. Parks are not in it,
    /// so the only proof that none did is a person's word and a generation that nobody raised since; `fences` are
    /// those of people.
    pub(super) fn may_have_been_held_since(&self, generation: u64, fences: u64) -> bool {
        self.outcome.is_none_or(|outcome| {
            let is_same = generation <= outcome.generation.saturating_add(fences);
            !(outcome.is_by_person && is_same)
        })
    }

    fn note_outcome(&mut self, fact: &Fact, entry: &JournalEntry) {
        let is_by_person = match fact {
            Fact::StepCompleted { by, .. } => *by == SaidBy::Operator,
            Fact::InputsComputed { .. }
            | Fact::BranchTaken { .. }
            | Fact::StepPlanned { .. }
            | Fact::StepFailed { caught: true, .. } => false,
            Fact::Ended { .. } => {
                let is_touched = self.is_touched_since;
                if let Some(outcome) = self.outcome.as_mut().filter(|it| it.seq == entry.seq) {
                    outcome.ended = !is_touched;
                }
                return;
            }
            Fact::Retried => {
                if let Some(outcome) = &mut self.outcome {
                    outcome.ended = false;
                }
                return;
            }
            Fact::Charged(_)
            | Fact::ValuesResolved { .. }
            | Fact::CallMarked { .. }
            | Fact::OutcomeUnknown { .. }
            | Fact::NothingHappened { .. }
            | Fact::OutputRefused { .. }
            | Fact::StepFailed { caught: false, .. }
            | Fact::DeadlineSet { .. }
            | Fact::CancelRequested(_)
            | Fact::AttentionCalled { .. }
            | Fact::ReconcileAsked { .. }
            | Fact::Claimed { .. }
            | Fact::TakenOver { .. }
            | Fact::FenceRaised
            | Fact::Released { .. }
            | Fact::Requeued { .. }
            | Fact::Parked { .. }
            | Fact::Woken { .. } => return,
        };
        let (seq, generation) = (entry.seq, entry.generation);
        self.outcome = Some(Outcome { seq, generation, is_by_person, ended: false });
    }

    fn step(&mut self, step: &'j StepKey, at: Timestamp) -> &mut Recorded<'j> {
        let arrived = self.arrived;
        let recorded = self.steps.entry(step.as_str()).or_default();
        recorded.started = recorded.started.or(arrived).or(Some(at));
        recorded.last = Some(at);
        recorded
    }

    fn settle(&mut self, step: &'j StepKey, at: Timestamp, effect: Option<EffectState>) {
        self.step(step, at).effect = effect;
        self.is_touched_since = true;
    }

    /// What failed is tried again, unless its failure was its outcome.
    fn retried(&mut self) {
        self.is_touched_since = true;
        for recorded in self.steps.values_mut() {
            recorded.failed = recorded.caught;
        }
    }

    /// An outcome: the run comes to its next step.
    fn moved_on(&mut self, at: Timestamp) {
        self.arrived = Some(at);
        self.is_touched_since = false;
    }
}

impl Recorded<'_> {
    /// Whether the step failed in a way that is the same for every attempt and comes before any call: then no
    /// attempt can have called its action.
    pub(super) fn was_never_called(&self) -> bool {
        let before_the_call =
            [Code::EXPRESSION_ERROR, Code::VALUE_UNAVAILABLE, Code::ACTION_POLICY_MISSING];
        self.failed_by == Some(SaidBy::Kernel)
            && self.failed.is_some_and(|failure| before_the_call.contains(&failure.code))
    }
}
