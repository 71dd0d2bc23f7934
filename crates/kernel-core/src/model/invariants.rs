//! What must hold after every step of every script.

use std::collections::BTreeSet;

use crate::{
    Amounts, Attention, Budget, CancelRequest, Fact, Failure, JournalEntry, Micros, OpenEffect,
    Phase, Run, StepCharge, StepDeadline, StepKey, Timestamp, Todo, apply,
};

/// A property does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub String);

/// What of a run the journal alone decides: everything but scheduling.
#[derive(Debug, Clone, PartialEq)]
pub struct JournaledView {
    seq: u64,
    cancel: Option<CancelRequest>,
    deadline: Option<StepDeadline>,
    charged: Option<StepCharge>,
    stands: Stands,
}

#[derive(Debug, Clone, PartialEq)]
enum Stands {
    Live(Option<OpenEffect>),
    Attention(Failure, Option<OpenEffect>),
    Ended(Phase),
}

/// What of a run the journal alone decides: everything but scheduling. Folding [`apply`] over a run's journal, from
/// a new run on, must give the stored row's view.
#[must_use]
pub fn journaled_view(run: &Run) -> JournaledView {
    let stands = match &run.phase {
        Phase::Queued { todo, .. } | Phase::Running { todo, .. } => Stands::Live(match todo {
            Todo::Steps => None,
            Todo::Reconcile(effect) => Some(effect.clone()),
        }),
        Phase::Waiting(_) => Stands::Live(None),
        Phase::NeedsAttention(Attention { error, effect }) => {
            Stands::Attention(error.clone(), effect.clone())
        }
        Phase::Succeeded { .. } | Phase::Failed { .. } | Phase::Canceled { .. } => {
            Stands::Ended(run.phase.clone())
        }
    };
    JournaledView {
        seq: run.seq,
        cancel: run.cancel.clone(),
        deadline: run.deadline.clone(),
        charged: run.charged.clone(),
        stands,
    }
}

/// Checks a stored row against its journal and the rules that need no history.
pub(super) fn check(run: &Run, journal: &[JournalEntry], now: Timestamp) -> Result<(), Violation> {
    has_wake_source(run)?;
    is_looked_at_again(run, now)?;
    honours_cancel(run)?;
    ended_explained(run)?;
    fold_gives_row(run, journal)?;
    outcomes_once(journal)?;
    values_once(journal)?;
    Ok(())
}

/// Every live run has a wake source. (The world checks that a run never waits on a signal that exists.)
pub(super) fn has_wake_source(run: &Run) -> Result<(), Violation> {
    match &run.phase {
        Phase::Waiting(wait) if wait.on.is_none() && wait.deadline.is_none() => {
            Err(Violation("a run waits for nothing".to_owned()))
        }
        Phase::Waiting(_)
        | Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::NeedsAttention(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => Ok(()),
    }
}

/// A queued or running run is due within a day, which is the longest that a provider may ask for.
fn is_looked_at_again(run: &Run, now: Timestamp) -> Result<(), Violation> {
    match run.claimable_at() {
        Some(at) if at.since(now) > Micros::from_secs(86_400) => {
            Err(Violation(format!("nobody looks at the run before {at}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Never waiting or queued with cancel requested, except queued to reconcile.
fn honours_cancel(run: &Run) -> Result<(), Violation> {
    let idle = matches!(run.phase, Phase::Waiting(_) | Phase::Queued { todo: Todo::Steps, .. });
    if run.cancel.is_some() && idle {
        return Err(Violation(format!("{} with cancel requested", run.state())));
    }
    Ok(())
}

/// No run ends on an unexplained effect; what an operator abandoned stays listed as such.
fn ended_explained(run: &Run) -> Result<(), Violation> {
    if run.state().is_terminal() && run.has_unsettled_effect() {
        return Err(Violation("the run ended on an unexplained effect".to_owned()));
    }
    Ok(())
}

fn fold_gives_row(run: &Run, journal: &[JournalEntry]) -> Result<(), Violation> {
    let new = Run::new(run.id, (*run.origin).clone());
    let folded = journal.iter().flat_map(|entry| &entry.facts).fold(new, apply);
    let (folded, stored) = (journaled_view(&folded), journaled_view(run));
    if folded == stored {
        Ok(())
    } else {
        Err(Violation(format!("the journal folds to {folded:#?}, the row is {stored:#?}")))
    }
}

/// A step charges at most once, and the counters are the sum of what is recorded.
pub(super) fn charged_once(budget: &Budget, journal: &[JournalEntry]) -> Result<(), Violation> {
    let (mut seen, mut sum) = (BTreeSet::new(), Amounts::default());
    for fact in journal.iter().flat_map(|entry| &entry.facts) {
        if let Fact::Charged(charge) = fact {
            if !seen.insert(&charge.step) {
                return Err(Violation(format!("`{}` was charged twice", charge.step)));
            }
            sum.add_all(&charge.amounts);
        }
    }
    for line in budget.lines() {
        let charged = sum.get(&line.dimension).unwrap_or_default();
        if line.used != charged || line.limit.is_some_and(|limit| limit < line.used) {
            return Err(Violation(format!("{charged} were charged, the counter says {line:?}")));
        }
    }
    Ok(())
}

/// An outcome is recorded at most once per step; a failure that was caught is one.
fn outcomes_once(journal: &[JournalEntry]) -> Result<(), Violation> {
    let mut seen: BTreeSet<&StepKey> = BTreeSet::new();
    for fact in journal.iter().flat_map(|entry| &entry.facts) {
        if let Fact::StepCompleted { step, .. } | Fact::StepFailed { step, caught: true, .. } = fact
            && !seen.insert(step)
        {
            return Err(Violation(format!("two outcomes of `{step}`")));
        }
    }
    Ok(())
}

/// What was resolved for a step is recorded once per reference: no later attempt sees another value.
fn values_once(journal: &[JournalEntry]) -> Result<(), Violation> {
    let mut seen = BTreeSet::new();
    for fact in journal.iter().flat_map(|entry| &entry.facts) {
        let Fact::ValuesResolved { step, values } = fact else { continue };
        for (reference, _) in values.iter() {
            if !seen.insert((step, reference)) {
                return Err(Violation(format!("`{reference}` of `{step}` was recorded twice")));
            }
        }
    }
    Ok(())
}
