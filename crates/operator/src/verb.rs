//! Acting on a run: each verb is decided by the core on the stored row, and committed with an audit row.

use serde_json::{Value, json};
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Audit, Code, Commit, Coverage, LoadRequest, OUTPUT_MAX_BYTES, Phase, RowInput, Run, RunFilter,
    RunId, RunState, StepKey, StoreError, StoredVersion, Timestamp, Verdict, decide_row, payload,
    why_retry_is_in_vain,
};
use surefoot_language::validate_against;

use crate::operator::{Signed, check_words};
use crate::view::{Done, Outcome, RunView, VerdictView, VerdictsView};
use crate::{ErrorClass, Operator, OperatorError};

/// How often a cancel without a revision is decided anew because the run changed meanwhile.
const CANCEL_ATTEMPTS: u32 = 10;

/// Says what became of an effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolve {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepKey,
    /// The revision that was looked at.
    pub seen: u64,
    /// What is true.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
}

/// Has a worker ask the provider again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconcile {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepKey,
    /// The revision that was looked at.
    pub seen: u64,
    /// Why.
    pub why: String,
}

/// Tries a failed run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The run.
    pub run: RunId,
    /// The revision that was looked at.
    pub seen: u64,
    /// Why.
    pub why: String,
}

/// Gives a run up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abandon {
    /// The run.
    pub run: RunId,
    /// The revision that was looked at.
    pub seen: u64,
    /// Whether an effect that may have happened may stay unexplained.
    pub accept_unknown: bool,
    /// Why.
    pub why: String,
}

/// Cancels a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    /// The run.
    pub run: RunId,
    /// The revision that was looked at; without one, the run is canceled wherever it stands.
    pub seen: Option<u64>,
    /// Why.
    pub why: String,
}

/// A verb on its way to the store.
struct Act {
    run: RunId,
    seen: Option<u64>,
    verb: &'static str,
    why: String,
    details: Value,
    input: RowInput,
}

impl Operator {
    /// Says what became of an effect that nobody could explain, or supplies its output.
    ///
    /// # Errors
    /// [`OperatorError::OutputInvalid`], [`OperatorError::OutputTooLarge`] for an output that the action could not
    /// have had; [`OperatorError::NotACode`]; [`OperatorError::Unsaid`], [`OperatorError::TooLong`], [`OperatorError::Nul`]
    /// for a message that is none; [`OperatorError::Refused`] where no effect of the step waits for a word;
    /// [`OperatorError::Conflict`].
    pub async fn resolve(&self, resolve: Resolve) -> Result<Done, OperatorError> {
        let Resolve { run, step, seen, verdict, why } = resolve;
        let details = match &verdict {
            Verdict::Succeeded { output } => {
                let row = self.look(run, Some(seen)).await?.0;
                self.judge_output(&row, &step, output).await?;
                json!({ "step": step, "verdict": "succeeded", "output": output })
            }
            Verdict::Failed { code, message } => {
                check_words("message", message)?;
                // It is the run's error code from then on, in lists, metrics and `catch`.
                if let Some(code) = code.as_ref().filter(|it| !Code::is_well_formed(it.as_str())) {
                    return Err(OperatorError::NotACode { code: code.as_str().to_owned() });
                }
                json!({ "step": step, "verdict": "failed", "code": code, "message": message })
            }
            Verdict::NotPerformed => json!({ "step": step, "verdict": "not_performed" }),
        };
        let input = RowInput::Resolve { step, verdict };
        self.act(Act { run, seen: Some(seen), verb: "resolve", why, details, input }).await
    }

    /// Has a worker ask the provider again; the call is not repeated.
    ///
    /// # Errors
    /// [`OperatorError::Refused`] where no effect of the step is unexplained; [`OperatorError::Conflict`].
    pub async fn reconcile(&self, reconcile: Reconcile) -> Result<Done, OperatorError> {
        let Reconcile { run, step, seen, why } = reconcile;
        let details = json!({ "step": step });
        let input = RowInput::AskReconcile { step };
        self.act(Act { run, seen: Some(seen), verb: "reconcile", why, details, input }).await
    }

    /// Tries a failed run again: recorded outcomes and effect keys stay, the count of failures begins anew.
    ///
    /// # Errors
    /// [`OperatorError::Refused`] where the run did not fail or an effect is unexplained;
    /// [`OperatorError::Conflict`].
    pub async fn retry(&self, retry: Retry) -> Result<Done, OperatorError> {
        let Retry { run, seen, why } = retry;
        let (details, input) = (json!({}), RowInput::Retry);
        self.act(Act { run, seen: Some(seen), verb: "retry", why, details, input }).await
    }

    /// Tries one page of failed runs again, children among them, each on the revision that it was listed with; whatever
    /// states the filter names, only failed runs are looked at; with a code, only those that failed with it.
    ///
    /// Children come before those that failed because of them: so a parent finds its children on their way. One that
    /// would end in the same way again is not retried, and says why.
    ///
    /// # Errors
    /// [`OperatorError::NotACode`]; [`OperatorError::NotFound`] for a scope, a workflow or a parent that is not known; the
    /// store's. A run that is refused, or that moved meanwhile, has its reason in its verdict and holds up no other.
    pub async fn retry_failed(
        &self,
        filter: RunFilter,
        code: Option<&Code>,
        why: &str,
    ) -> Result<VerdictsView, OperatorError> {
        self.signed(why)?;
        if let Some(code) = code.filter(|code| !Code::is_well_formed(code.as_str())) {
            return Err(OperatorError::NotACode { code: code.as_str().to_owned() });
        }
        let filter = RunFilter { states: vec![RunState::Failed], children: true, ..filter };
        let page = self.run_page(filter).await?;
        let fits = |run: &RunView| {
            code.is_none_or(|code| run.error.as_ref().is_some_and(|error| error.code == *code))
        };
        let mut rows = page.rows;
        rows.sort_by_key(|row| std::cmp::Reverse(row.run.origin.depth()));
        let rows = rows.iter().map(RunView::from).filter(fits);
        let verdicts = self.retry_each(rows.map(|row| (row.id, row.revision)), why).await?;
        Ok(VerdictsView { verdicts, next: page.next })
    }

    /// Tries some runs again, each on the revision that somebody looked at, in this order. One that would end in the same
    /// way again is not retried, and says why.
    ///
    /// # Errors
    /// The store's. A run that is refused, or that moved meanwhile, has its reason in its verdict and holds up no other.
    pub async fn retry_listed(
        &self,
        runs: &[(RunId, u64)],
        why: &str,
    ) -> Result<VerdictsView, OperatorError> {
        self.signed(why)?;
        let verdicts = self.retry_each(runs.iter().copied(), why).await?;
        Ok(VerdictsView { verdicts, next: None })
    }

    async fn retry_each(
        &self,
        runs: impl Iterator<Item = (RunId, u64)>,
        why: &str,
    ) -> Result<Vec<VerdictView>, OperatorError> {
        let (state, mut verdicts) = (RunState::Failed, Vec::new());
        for (run, seen) in runs {
            let verdict = match self.retry_if_of_use(Retry { run, seen, why: why.to_owned() }).await
            {
                Ok(Ok(done)) => VerdictView { run, state: done.run.state, refused: None },
                Ok(Err(in_vain)) => VerdictView { run, state, refused: Some(in_vain) },
                Err(error) if error.class() == ErrorClass::Unavailable => return Err(error),
                Err(error) => VerdictView { run, state, refused: Some(error.to_string()) },
            };
            verdicts.push(verdict);
        }
        Ok(verdicts)
    }

    /// Tries a run again, unless it would end in the same way: then why.
    async fn retry_if_of_use(&self, retry: Retry) -> Result<Result<Done, String>, OperatorError> {
        let reading = self.reading(retry.run).await?;
        match why_retry_is_in_vain(&reading.input()) {
            Some(in_vain) => Ok(Err(in_vain)),
            None => Ok(Ok(self.retry(retry).await?)),
        }
    }

    /// Ends a run that needs a person, or that no live worker can take, as failed.
    ///
    /// # Errors
    /// [`OperatorError::Refused`] elsewhere, and where an effect is unexplained and that is not accepted;
    /// [`OperatorError::Conflict`].
    pub async fn abandon(&self, abandon: Abandon) -> Result<Done, OperatorError> {
        let Abandon { run, seen, accept_unknown, why } = abandon;
        let (row, now) = self.look(run, Some(seen)).await?;
        let unclaimable = match row.phase {
            Phase::Queued { .. } => self.is_unclaimable(&row, now).await?,
            Phase::Running { .. }
            | Phase::Waiting(_)
            | Phase::NeedsAttention(_)
            | Phase::Succeeded { .. }
            | Phase::Failed { .. }
            | Phase::Canceled { .. } => false,
        };
        let details = json!({ "accept_unknown": accept_unknown, "unclaimable": unclaimable });
        let input = RowInput::Abandon { accept_unknown, unclaimable };
        self.act(Act { run, seen: Some(seen), verb: "abandon", why, details, input }).await
    }

    /// Cancels a run from wherever it stands, and says what came of it.
    ///
    /// # Errors
    /// [`OperatorError::Conflict`] if a revision was given and the run has moved.
    pub async fn cancel(&self, cancel: Cancel) -> Result<Done, OperatorError> {
        let Cancel { run, seen, why } = cancel;
        let (actor, reason) = (self.actor.to_string(), why.clone());
        let input = RowInput::Cancel { actor, reason };
        self.act(Act { run, seen, verb: "cancel", why, details: json!({}), input }).await
    }

    /// Looks, decides, commits. A run that was changed meanwhile is a conflict where a revision was looked at; a
    /// cancel without one is decided anew.
    async fn act(&self, act: Act) -> Result<Done, OperatorError> {
        let signed = self.signed(&act.why)?;
        for _ in 0..CANCEL_ATTEMPTS {
            let (row, now) = self.look(act.run, act.seen).await?;
            let facts = decide_row(&row, act.input.clone(), now)?;
            if facts.is_empty() {
                return self.done(&row, &act, false).await;
            }
            let commit = Commit::new(&row, &facts).audited(audit_of(&act, &signed));
            match self.store.run_commit(commit).await {
                Ok(committed) => return self.done(&committed.run, &act, true).await,
                // With a revision, looking again says who was faster.
                Err(StoreError::Conflict | StoreError::LeaseLost) => {}
                Err(source @ StoreError::UnknownOutcome(_)) => {
                    return Err(OperatorError::InDoubt { run: act.run, source });
                }
                Err(error @ StoreError::ParentMovedOn { .. }) => {
                    return Err(OperatorError::ParentMovedOn(error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(OperatorError::Busy { run: act.run })
    }

    /// The row, if it is as it was when it was looked at.
    async fn look(&self, run: RunId, seen: Option<u64>) -> Result<(Run, Timestamp), OperatorError> {
        // No journal is that long: only the row is read.
        let request = LoadRequest { run, after: Some(u64::from(u32::MAX)) };
        let stored = self.store.run_load(request).await?;
        let stored = stored.ok_or_else(|| OperatorError::not_found(format!("run {run}")))?;
        let row = stored.run;
        match seen {
            Some(seen) if seen != row.revision => Err(OperatorError::Conflict {
                run,
                seen,
                revision: row.revision,
                state: row.state(),
            }),
            Some(_) | None => Ok((row, stored.now)),
        }
    }

    async fn done(&self, row: &Run, act: &Act, changed: bool) -> Result<Done, OperatorError> {
        let version = self.version_of(row).await?.map_or(0, |version| version.revision);
        let outcome = if act.verb == "cancel" { canceled(row, changed) } else { Outcome::Done };
        Ok(Done { outcome, run: RunView::of(row, version) })
    }

    async fn version_of(&self, row: &Run) -> Result<Option<StoredVersion>, OperatorError> {
        Ok(self.store.version_load(row.origin.version).await?)
    }

    async fn is_unclaimable(&self, row: &Run, now: Timestamp) -> Result<bool, OperatorError> {
        let sessions = self.store.session_list(&row.origin.app).await?;
        let Some(version) = self.version_of(row).await? else {
            return Err(OperatorError::not_found(format!("version {}", row.origin.version)));
        };
        let coverage = Coverage::of_run(&version.footprint, &row.origin, &sessions, now);
        Ok(coverage != Coverage::Covered)
    }

    /// Whether an output could have been the action's own.
    async fn judge_output(
        &self,
        row: &Run,
        step: &StepKey,
        output: &Value,
    ) -> Result<(), OperatorError> {
        // Where no effect of the step waits for a word, the core refuses the verb whatever the output is.
        let Some(effect) = row.effect().filter(|effect| effect.step == *step) else {
            return Ok(());
        };
        let kept = payload::Payload::from_value(output).map_err(|error| {
            let (pointer, why) = (error.pointer, error.rule.to_string());
            OperatorError::OutputPayload { pointer, why }
        })?;
        let (bytes, limit) = (kept.text().len(), OUTPUT_MAX_BYTES);
        if bytes > limit {
            return Err(OperatorError::OutputTooLarge { bytes, limit });
        }
        let version = self
            .version_of(row)
            .await?
            .ok_or_else(|| OperatorError::not_found(format!("version {}", row.origin.version)))?;
        let plan: Plan = payload::from_stored(&version.plan).map_err(|error| {
            let what = format!("the plan of version {}", version.version);
            OperatorError::Unreadable { what, why: error.to_string() }
        })?;
        let policy = plan.policies.get(&effect.action);
        let Some(schema) = policy.and_then(|policy| policy.output.as_ref()) else {
            return Ok(());
        };
        validate_against(schema, output).map_err(|findings| OperatorError::OutputInvalid {
            action: effect.action.clone(),
            findings,
        })
    }
}

fn audit_of(act: &Act, signed: &Signed) -> Audit {
    Audit {
        actor: signed.actor.clone(),
        verb: act.verb.to_owned(),
        reason: signed.reason.clone(),
        details: act.details.to_string(),
    }
}

/// What a cancel came to.
fn canceled(row: &Run, changed: bool) -> Outcome {
    match row.state() {
        RunState::Canceled if changed => Outcome::Canceled,
        RunState::Succeeded | RunState::Failed | RunState::Canceled => Outcome::AlreadyEnded,
        RunState::Queued | RunState::Running | RunState::Waiting | RunState::NeedsAttention => {
            if row.has_unsettled_effect() {
                Outcome::WillCancelAfterEffect
            } else {
                Outcome::WillCancel
            }
        }
    }
}
