//! Asks for the end of a run.

use std::time::Duration;

use surefoot_kernel_core::{
    Audit, Commit, LoadRequest, RowInput, Run, RunId, RunState, StoreError, TxStore, decide_row,
};

use super::Kernel;
use crate::CancelError;
use crate::engine::pace::Pause;

/// What came of a cancel request. Exhaustive on purpose: a new outcome must stop every caller's build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It is canceled now.
    Canceled,
    /// It had ended before: nothing changed.
    AlreadyEnded(RunState),
    /// The request is recorded. A running run is canceled by its worker, at the latest when its lease ends; one with
    /// an effect that nobody can explain yet is explained first.
    WillCancel {
        /// Where the run stands until then.
        state: RunState,
    },
}

/// Other writers may be faster this often in a row before the caller hears of it.
const TRIES: u32 = 20;

impl<S: TxStore> Kernel<S> {
    /// Cancels a run: at once where nothing runs, else by asking its worker. The reason becomes the run's message and
    /// stands in the audit.
    ///
    /// Not cancel safe: the request may have been recorded when the future is dropped; asking again is harmless.
    ///
    /// # Errors
    /// There is no such run, or the store's word.
    pub async fn cancel(
        &self,
        run: RunId,
        reason: impl Into<String>,
    ) -> Result<CancelOutcome, CancelError> {
        let reason = reason.into();
        let mut pause = Pause::new(Duration::from_millis(5), Duration::from_millis(500));
        let mut tries = 0;
        loop {
            let error = match self.try_cancel(run, &reason).await {
                Ok(outcome) => {
                    self.local().cancel(run);
                    self.local().run_moved(run);
                    // A tree is canceled from the top down: recovery goes on where this commit stopped.
                    self.local().wake(true);
                    return Ok(outcome);
                }
                Err(CancelError::Store(error)) => error,
                Err(error) => return Err(error),
            };
            tries += 1;
            // After an unknown outcome the run itself says what became of it: the request is idempotent.
            let again = matches!(
                error,
                StoreError::Conflict | StoreError::LeaseLost | StoreError::UnknownOutcome(_)
            );
            if !again || tries >= TRIES {
                return Err(error.into());
            }
            tokio::time::sleep(pause.length()).await;
        }
    }

    async fn try_cancel(&self, run: RunId, reason: &str) -> Result<CancelOutcome, CancelError> {
        let request = LoadRequest { run, after: Some(i64::MAX.unsigned_abs()) };
        let stored = self.store().run_load(request).await?;
        let Some(stored) = stored.filter(|stored| stored.run.origin.app == *self.app()) else {
            return Err(CancelError::NotFound { run });
        };
        let before = stored.run;
        if before.state().is_terminal() {
            return Ok(CancelOutcome::AlreadyEnded(before.state()));
        }
        let actor = format!("app:{}", self.app());
        let input = RowInput::Cancel { actor: actor.clone(), reason: reason.to_owned() };
        // A cancel request fits every state.
        let facts = decide_row(&before, input, stored.now).unwrap_or_default();
        if facts.is_empty() {
            return Ok(outcome_of(&before));
        }
        let audit = Audit {
            actor,
            verb: "cancel".to_owned(),
            reason: reason.to_owned(),
            details: "{}".to_owned(),
        };
        let commit = Commit::new(&before, &facts).audited(audit);
        let committed = self.store().run_commit(commit).await?;
        Ok(outcome_of(&committed.run))
    }
}

fn outcome_of(run: &Run) -> CancelOutcome {
    match run.state() {
        RunState::Canceled => CancelOutcome::Canceled,
        state @ (RunState::Succeeded | RunState::Failed) => CancelOutcome::AlreadyEnded(state),
        state @ (RunState::Queued
        | RunState::Running
        | RunState::Waiting
        | RunState::NeedsAttention) => CancelOutcome::WillCancel { state },
    }
}
