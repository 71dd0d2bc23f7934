//! Whether anybody still waits for the work of a step.

use surefoot_kernel_core::{
    Fact, JournalEntry, LoadRequest, Run, RunId, RunState, StepKey, StoreError, TxStore,
};

use super::Kernel;

/// What a step wants of the work that another process does for it. Exhaustive on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepInterest {
    /// Go on: the step has no outcome yet. That is so also while nobody works on the run, and after another worker
    /// took it over.
    Wanted,
    /// Stop, and throw away what comes late: the run is canceled, or will be.
    Canceled,
    /// Stop, and throw away what comes late: the step has its outcome, or the run has ended, or there is no such run.
    Over,
}

impl<S: TxStore> Kernel<S> {
    /// Whether a step still wants what another process does for it.
    ///
    /// That process asks before it begins and again before it delivers. A new attempt of the step is no reason to
    /// stop: it has the same effect key, and finds the work that was begun.
    ///
    /// Cancel safe: it only reads.
    ///
    /// # Errors
    /// The store's word. It says nothing about the step: ask again.
    pub async fn step_interest(
        &self,
        run: RunId,
        step: &StepKey,
    ) -> Result<StepInterest, StoreError> {
        let stored = self.store().run_load(LoadRequest { run, after: None }).await?;
        let Some(stored) = stored.filter(|stored| stored.run.origin.app == *self.app()) else {
            return Ok(StepInterest::Over);
        };
        // A journal that cannot be read may be mended, and then the run goes on: it is no proof of an end.
        let journal = stored.journal.unwrap_or_default();
        Ok(interest(&stored.run, has_outcome(&journal, step)))
    }
}

fn interest(run: &Run, has_outcome: bool) -> StepInterest {
    match run.state() {
        RunState::Canceled => StepInterest::Canceled,
        RunState::Succeeded | RunState::Failed => StepInterest::Over,
        RunState::Queued | RunState::Running | RunState::Waiting | RunState::NeedsAttention => {
            if run.cancel.is_some() {
                StepInterest::Canceled
            } else if has_outcome {
                StepInterest::Over
            } else {
                StepInterest::Wanted
            }
        }
    }
}

/// A failure is an outcome until an operator has the run tried again; one that was caught is so for ever.
fn has_outcome(journal: &[JournalEntry], wanted: &StepKey) -> bool {
    let (mut completed, mut failed) = (false, false);
    for fact in journal.iter().flat_map(|entry| &entry.facts) {
        completed |= matches!(fact, Fact::StepCompleted { step, .. } | Fact::StepFailed { step, caught: true, .. }
            if step == wanted);
        failed |= matches!(fact, Fact::StepFailed { step, .. } if step == wanted);
        failed &= !matches!(fact, Fact::Retried);
    }
    completed || failed
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use surefoot_kernel_core::{Code, Failure, SaidBy, Timestamp};

    use super::*;

    fn completed(step: &str) -> Fact {
        Fact::StepCompleted { step: step.into(), output: Value::Null, by: SaidBy::Action }
    }

    fn caught(step: &str) -> Fact {
        let (error, by) = (Failure::new(Code::ACTION_ERROR, "no"), SaidBy::Action);
        Fact::StepFailed { step: step.into(), error, effect: None, by, caught: true }
    }

    fn failed(step: &str) -> Fact {
        let error = Failure::new(Code::ACTION_ERROR, "no");
        Fact::StepFailed {
            step: step.into(),
            error,
            effect: None,
            by: SaidBy::Action,
            caught: false,
        }
    }

    #[track_caller]
    fn check(facts: Vec<Fact>, expected: bool) {
        let at = Timestamp::from_micros(0);
        let journal = [JournalEntry { seq: 0, generation: 1, at, facts }];
        assert_eq!(has_outcome(&journal, &"steps.1".into()), expected);
    }

    #[test]
    fn only_the_steps_own_outcome_counts_and_a_retry_takes_a_failure_back() {
        check(vec![], false);
        check(vec![completed("steps.0")], false);
        check(vec![completed("steps.0"), completed("steps.1")], true);
        check(vec![failed("steps.1")], true);
        check(vec![failed("steps.1"), Fact::Retried], false);
        check(vec![caught("steps.1"), failed("steps.1.catch.0"), Fact::Retried], true);
        check(vec![failed("steps.1"), Fact::Retried, completed("steps.1")], true);
        check(vec![completed("steps.1"), failed("steps.2"), Fact::Retried], true);
    }
}
