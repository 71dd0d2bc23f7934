//! Following a run to its end: what became durable since the last look, each step once.

use surefoot_kernel_core::{
    EffectState, Fact, JournalEntry, LoadRequest, RestoreInvalid, RunId, StepKey, Timestamp,
};

use crate::view::{At, RunView, WatchView, WatchedStep};
use crate::{Operator, OperatorError};

impl Operator {
    /// What became durable of a run behind the first `after` facts; `next` of the answer is where the next look
    /// begins.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`]; [`OperatorError::Unreadable`] if the journal cannot be read.
    pub async fn watch(&self, run: RunId, after: u64) -> Result<WatchView, OperatorError> {
        let request = LoadRequest { run, after: Some(after) };
        let stored = self.store.run_load(request).await?;
        let stored = stored.ok_or_else(|| OperatorError::not_found(format!("run {run}")))?;
        let unreadable = |invalid: RestoreInvalid| OperatorError::Unreadable {
            what: format!("the journal of run {run}"),
            why: invalid.what,
        };
        let journal = stored.journal.map_err(unreadable)?;
        let version = self.store.version_load(stored.run.origin.version).await?;
        let view = RunView::of(&stored.run, version.map_or(0, |version| version.revision));
        let steps = journal.iter().flat_map(|entry| since(entry, after)).collect();
        Ok(WatchView { run: view, steps, next: stored.run.seq })
    }
}

/// The durable steps of one row of the journal, without the facts that were seen before.
fn since(entry: &JournalEntry, after: u64) -> impl Iterator<Item = WatchedStep> {
    let seen = usize::try_from(after.saturating_sub(entry.seq)).unwrap_or(usize::MAX);
    let at = entry.at;
    entry.facts.iter().skip(seen).filter_map(move |fact| watched(fact, at))
}

fn watched(fact: &Fact, at: Timestamp) -> Option<WatchedStep> {
    let step = |step: &StepKey, what: &'static str, effect: Option<EffectState>, said: &str| {
        let message = (!said.is_empty()).then(|| said.to_owned());
        Some(WatchedStep { at: At(at), step: step.clone(), what, effect, message })
    };
    match fact {
        Fact::StepCompleted { step: key, .. } => step(key, "completed", None, ""),
        Fact::StepFailed { step: key, error, effect, caught, .. } => {
            let what = if *caught { "failed, and its `catch` goes on" } else { "failed" };
            step(key, what, *effect, &format!("{}: {}", error.code, error.message))
        }
        Fact::StepPlanned { step: key, .. } => step(key, "previewed", None, ""),
        Fact::CallMarked { step: key, .. } => step(key, "calling", Some(EffectState::Marked), ""),
        Fact::OutcomeUnknown { step: key, message, .. } => {
            step(key, "outcome unknown", Some(EffectState::Ambiguous), message)
        }
        Fact::NothingHappened { step: key, .. } => {
            step(key, "nothing happened", Some(EffectState::NotPerformed), "")
        }
        Fact::OutputRefused { step: key, error, .. } => {
            let said = format!("{}: {}", error.code, error.message);
            step(key, "output refused", Some(EffectState::Succeeded), &said)
        }
        Fact::DeadlineSet { step: key, .. } => step(key, "waits with a deadline", None, ""),
        Fact::ReconcileAsked { step: key } => step(key, "to be asked again", None, ""),
        Fact::InputsComputed { .. }
        | Fact::BranchTaken { .. }
        | Fact::Charged(_)
        | Fact::ValuesResolved { .. }
        | Fact::CancelRequested(_)
        | Fact::AttentionCalled { .. }
        | Fact::Retried
        | Fact::Ended { .. }
        | Fact::Claimed { .. }
        | Fact::TakenOver { .. }
        | Fact::FenceRaised
        | Fact::Released { .. }
        | Fact::Requeued { .. }
        | Fact::Parked { .. }
        | Fact::Woken { .. } => None,
    }
}
