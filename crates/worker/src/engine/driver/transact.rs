//! Prepares, runs and records a transactional step in one transaction of the store.

use std::sync::Arc;

use surefoot_kernel_core::{
    Amounts, Answer, BoxFuture, Call, Code, Commit, Exceeded, Fact, Input, Locked, StoreError,
    Timestamp, TxStore, TxWork, Work, apply, decide,
};
use surefoot_language::{Action, Halt, Object, OnTx, StepCx};

use super::answers::{Said, after_token, failed_for_now, of_error, panicked, source_of, timed_out};
use super::book::Book;
use super::call::kept;
use super::children::StepChildren;
use super::commit::{Trouble, Written, trouble};
use super::context::Heeds;
use super::hooks::{Droppable, Heard};
use super::prepare::Checked;
use super::values::Resolving;
use super::{Driver, Left, defect};
use crate::engine::hold::HookGuard;
use crate::engine::life::with_causes;
use crate::engine::pace::Pause;

/// Pauses before a transaction that lost against another one is tried again in place.
const CONFLICT_PAUSES_MS: [i64; 3] = [10, 40, 160];

/// How the work of one transaction ended.
enum Outcome {
    /// With these facts, written in the transaction.
    Decided(Vec<Fact>),
    /// With an answer that is decided on outside, after a rollback.
    Said(Said),
    /// The database refused a statement in favour of another transaction.
    Conflict(String),
    /// The driver has to stop.
    Left(Left),
}

/// What is done next about a transaction.
enum After {
    Next(Input),
    /// Again, since another transaction won.
    Conflict(String),
    /// Again, since the store was out of reach; nothing was written.
    Later(StoreError),
}

impl<S: TxStore> Driver<S> {
    pub(super) async fn transact(&self, book: &mut Book<S::Tx>, call: Call) -> Result<Input, Left> {
        let action = self.action(book, &call)?;
        self.tell_start(&call);
        let mut conflicts = CONFLICT_PAUSES_MS.into_iter();
        let mut pause = Pause::store();
        loop {
            match self.transact_once(book, &action, &call).await? {
                After::Next(input) => return Ok(input),
                After::Conflict(why) => {
                    let Some(millis) = conflicts.next() else {
                        let text = format!("another transaction won each time: {why}");
                        let answer = failed_for_now(Code::TRANSACTION_CONFLICT, text);
                        return Ok(Input::Answer { step: call.step, answer });
                    };
                    let span = surefoot_kernel_core::Micros::from_millis(millis);
                    tokio::time::sleep(self.shift.jitter.shorten(span)).await;
                }
                After::Later(error) => {
                    if !self.may_wait(&mut pause).await {
                        return Err(Left::LetGo(with_causes(&error)));
                    }
                }
            }
        }
    }

    async fn transact_once(
        &self,
        book: &mut Book<S::Tx>,
        action: &Action<S::Tx>,
        call: &Call,
    ) -> Result<After, Left> {
        self.still_ours()?;
        let guard = self.hold.begin_hook(true);
        let resolving = Resolving::gather(book);
        let cx = self.context(book, call, &guard, Heeds::Cancel, call.timeout, resolving.clone());
        let before = book.before;
        let asked = self.shift.now();
        let children = self.children_on(before, &call.step);
        let mut work = StepWork {
            driver: self,
            book,
            action,
            call,
            cx,
            resolving,
            children,
            guard,
            outcome: None,
        };
        let answer = self.engine.kernel.store().run_transact(before, &mut work).await;
        let (outcome, has_children) = (work.outcome.take(), work.children.any());
        drop(work);
        match (answer, outcome) {
            (Ok(Some(committed)), Some(Outcome::Decided(facts))) => {
                let mut all = std::mem::take(&mut book.pending.facts);
                let pending = all.len();
                all.extend(facts);
                let new = all.get(pending..).unwrap_or_default();
                if has_children {
                    self.engine.wake(false);
                }
                self.stored(book, (committed, asked), &all, new)?;
                Ok(After::Next(Input::Advance))
            }
            (Ok(_), Some(Outcome::Said(said))) => self.said_outside(book, call, said).await,
            (Ok(_), Some(Outcome::Conflict(why))) => Ok(After::Conflict(why)),
            (Ok(_), Some(Outcome::Left(left))) => Err(left),
            (Ok(_), _) => Err(defect("the store did not have the transaction's work done")),
            (Err(error), _) => self.transaction_failed(book, call, error).await,
        }
    }

    /// Nothing of the transaction is left: what the action said is decided and recorded on its own.
    async fn said_outside(
        &self,
        book: &mut Book<S::Tx>,
        call: &Call,
        said: Said,
    ) -> Result<After, Left> {
        let answer = match said {
            Said::Answer(answer) => answer,
            Said::Halted(Halt::LeaseLost) => return Err(Left::Lost),
            Said::Halted(Halt::Canceled) => match self.halted(book, Halt::Canceled).await? {
                Some(answer) => answer,
                None => return Ok(After::Next(Input::Advance)),
            },
        };
        Ok(After::Next(Input::Answer { step: call.step.clone(), answer }))
    }

    async fn transaction_failed(
        &self,
        book: &mut Book<S::Tx>,
        call: &Call,
        error: StoreError,
    ) -> Result<After, Left> {
        if matches!(error, StoreError::TransactionConflict(_)) {
            return Ok(After::Conflict(with_causes(&error)));
        }
        if matches!(error, StoreError::TransactionTimeout { .. }) {
            let answer = failed_for_now(Code::TRANSACTION_TIMEOUT, error.to_string());
            return Ok(After::Next(Input::Answer { step: call.step.clone(), answer }));
        }
        if matches!(trouble(&error), Trouble::Later) {
            return Ok(After::Later(error));
        }
        match self.overcome(book, &error).await? {
            // What was rolled back has no answer any more: the run is looked at again.
            Written::Stored | Written::Changed | Written::TakenOver => {
                Ok(After::Next(Input::Advance))
            }
            Written::OverBudget(exceeded) => {
                Ok(After::Next(Input::Answer { step: call.step.clone(), answer: over(&exceeded) }))
            }
            Written::Refused(why) => {
                let text = format!("the store refused the transaction: {why}");
                let answer = super::answers::failed(Code::ACTION_ERROR, text);
                Ok(After::Next(Input::Answer { step: call.step.clone(), answer }))
            }
        }
    }
}

fn over(exceeded: &Exceeded) -> Answer {
    Answer::Failed { failure: exceeded.failure(), retryable: false, retry_after: None }
}

/// One transactional step, as the store has it done.
struct StepWork<'d, S: TxStore> {
    driver: &'d Driver<S>,
    book: &'d Book<S::Tx>,
    action: &'d Action<S::Tx>,
    call: &'d Call,
    cx: StepCx,
    resolving: Arc<Resolving>,
    children: StepChildren<S::Tx>,
    guard: HookGuard,
    outcome: Option<Outcome>,
}

impl<S: TxStore> TxWork<S::Tx> for StepWork<'_, S> {
    fn work<'a>(&'a mut self, tx: &'a mut S::Tx, locked: Locked) -> BoxFuture<'a, Work> {
        Box::pin(async move {
            let outcome = self.outcome(tx, &locked).await;
            let work = match &outcome {
                Outcome::Decided(facts) => Work::Commit(Box::new(self.commit(facts))),
                Outcome::Said(_) | Outcome::Conflict(_) | Outcome::Left(_) => Work::Rollback,
            };
            self.outcome = Some(outcome);
            work
        })
    }
}

impl<S: TxStore> StepWork<'_, S> {
    async fn outcome(&self, tx: &mut S::Tx, locked: &Locked) -> Outcome {
        if let Err(fenced) = self.book.before.check(&locked.run) {
            return Outcome::Left(defect(fenced));
        }
        let judged = (self.action, self.book.plan.module.classifiers());
        let cost = match self.driver.check(judged, self.call, &self.cx, &self.guard).await {
            Ok(Checked::Ready(cost)) => cost,
            Ok(Checked::Stopped(said)) => return Outcome::Said(said),
            Err(left) => return Outcome::Left(left),
        };
        // The charge that binds is the last thing in the transaction; work that cannot be paid does not begin.
        if let Err(exceeded) = locked.budget.allows(&cost) {
            return Outcome::Said(Said::Answer(over(&exceeded)));
        }
        let output = match self.run(tx).await {
            Ok(Said::Answer(Answer::Succeeded { output })) => output,
            Ok(said @ (Said::Answer(_) | Said::Halted(_))) => return Outcome::Said(said),
            Err(outcome) => return outcome,
        };
        self.decide(cost, output, locked.now)
    }

    async fn run(&self, tx: &mut S::Tx) -> Result<Said, Outcome> {
        let Object::Transactional(object) = self.action.object() else {
            return Err(Outcome::Left(defect("only a transactional action gets a transaction")));
        };
        let (call, driver) = (self.call, self.driver);
        let on = OnTx { tx, children: &self.children };
        let hook = async { object.run(&self.cx, on, &call.config).await };
        let heard = driver.listen(&self.guard, call.timeout, Droppable::Yes, hook).await;
        Ok(match heard.map_err(Outcome::Left)? {
            Heard::Back { value: Ok(output), .. } => Said::Answer(kept(self.action, output)),
            Heard::Back { value: Err(error), told } => {
                let store = driver.engine.kernel.store();
                if let Some(source) = source_of(&error)
                    && store.is_transaction_conflict(source)
                {
                    return Err(Outcome::Conflict(source.to_string()));
                }
                after_token(of_error(error, self.book.plan.module.classifiers()), told, call)
            }
            Heard::Panicked(text) => Said::Answer(panicked(&text)),
            Heard::TimedOut => Said::Answer(timed_out(call)),
        })
    }

    /// Only an output is decided on inside: everything else rolls the work back first.
    fn decide(&self, cost: Amounts, output: serde_json::Value, now: Timestamp) -> Outcome {
        let (step, values) = (self.call.step.clone(), self.resolving.gathered());
        let resolved = Input::Resolved { step: step.clone(), values };
        let mut facts = Vec::new();
        for input in [resolved, Input::Worked { step, cost, output }] {
            match decide(&self.book.held, &self.book.plan.plan, input, now) {
                Ok(decision) => facts.extend(decision.facts),
                Err(rejection) => return Outcome::Left(defect(rejection)),
            }
        }
        Outcome::Decided(facts)
    }

    /// The outcome, with everything that was pending.
    fn commit(&self, facts: &[Fact]) -> Commit {
        let after = facts.iter().fold(self.book.held.run.clone(), apply);
        let pending = self.book.pending.facts.iter();
        let all: Vec<Fact> = pending.chain(facts).cloned().collect();
        Commit::of(self.book.before, after, &all)
    }
}
