//! Drives one run from its claim to wherever it stops.
//!
//! The core decides; what is here carries decisions out in the order that they ask for, and never acts on a command
//! before the store has said that the facts before it are durable.

mod ahead;
mod answers;
mod book;
mod call;
mod children;
mod commit;
mod context;
mod hooks;
mod load;
mod output;
mod prepare;
mod reconcile;
mod transact;
mod values;

use std::sync::{Arc, OnceLock};

use surefoot_kernel_core::{
    Answer, Command, Durability, EffectClass, Failure, Input, Measure, Micros, Phase as RunPhase,
    Rejection, RowInput, Run, Sealed, StepKey, Timestamp, Todo, TxStore, ValueResolver, decide,
};
use tracing::Instrument as _;

use super::hold::Hold;
use super::pace::minus;
use super::shift::{Phase, Shift};
use super::{Cached, Engine, Taken};
use crate::spans;
pub(crate) use answers::{Said, config_invalid, failed, of_error, panicked};
use book::Book;
pub(crate) use book::LoadedPlan;
use commit::Written;
pub(crate) use output::judged_by;
pub(crate) use prepare::cost_of;

/// Decisions without a store between two chances for others to run.
const TURNS_BEFORE_YIELD: u32 = 32;
/// Inputs in a row that the core may reject before the driver gives up: it would be a defect.
const REJECTIONS_MAX: u32 = 3;

/// How a driver left its run.
pub(crate) enum Left {
    /// It is stored like this, and not this worker's any more.
    Stored(Box<Run>, Timestamp),
    /// Another worker has it. Nothing was written.
    Lost,
    /// Nothing more is written; its lease lapses.
    LetGo(String),
}

/// What a driver knows besides the run's state.
pub(super) struct Driver<S: TxStore> {
    engine: Arc<Engine<S>>,
    shift: Arc<Shift>,
    hold: Arc<Hold>,
    /// One resolver per claim, made when the first value is asked for.
    resolver: Arc<OnceLock<Arc<dyn ValueResolver>>>,
}

/// Drives a run that is held.
pub(crate) async fn drive<S: TxStore>(
    engine: Arc<Engine<S>>,
    shift: Arc<Shift>,
    hold: Arc<Hold>,
    taken: Taken,
) -> Left {
    let resolver = Arc::default();
    let driver = Driver { engine, shift, hold, resolver };
    driver.shift.alone(&driver.hold).await;
    // What is done once, or hardly ever, is kept out of the future that each step is polled through.
    let mut book = match Box::pin(driver.open(taken)).await {
        Ok(book) => book,
        Err(left) => return left,
    };
    let trace = book.held.cursor.invocation().trace.clone();
    spans::claimed(&book.held.run, trace.as_ref());
    let span = spans::run(&book.held.run, trace.as_ref());
    let left = driver.work(&mut book).instrument(span.clone()).await;
    if let Left::Stored(run, _) = &left {
        span.record("state", run.state().as_str());
        if !run.state().is_terminal() {
            driver.remember(book);
        }
    }
    left
}

impl<S: TxStore> Driver<S> {
    async fn work(&self, book: &mut Book<S::Tx>) -> Left {
        let mut input = Input::Advance;
        let mut turns = 0;
        loop {
            turns += 1;
            if turns % TURNS_BEFORE_YIELD == 0 {
                tokio::task::yield_now().await;
            }
            match self.turn(book, input).await {
                Ok(next) => input = next,
                Err(left) => return left,
            }
        }
    }

    /// Decides, makes it durable, carries the command out.
    async fn turn(&self, book: &mut Book<S::Tx>, input: Input) -> Result<Input, Left> {
        let is_boundary = matches!(input, Input::Advance);
        let input = if is_boundary { self.at_boundary(book).await? } else { input };
        match self.record(book, input).await? {
            Some(command) => self.carry_out(book, command).await,
            None => Ok(Input::Advance),
        }
    }

    /// What is done between two steps before the next one is looked at.
    async fn at_boundary(&self, book: &mut Book<S::Tx>) -> Result<Input, Left> {
        if self.hold.is_lost() {
            return Err(Left::Lost);
        }
        // The keeper heard of a cancel request that no commit of this run has met yet.
        if self.hold.is_canceled() && book.held.run.cancel.is_none() {
            Box::pin(self.reload(book)).await?;
        }
        let may_leave = matches!(book.held.run.phase, RunPhase::Running { todo: Todo::Steps, .. });
        if self.shift.phase() >= Phase::HandingOver && may_leave {
            return Ok(Input::Row(RowInput::HandOver));
        }
        Ok(Input::Advance)
    }

    async fn carry_out(&self, book: &mut Book<S::Tx>, command: Command) -> Result<Input, Left> {
        match command {
            Command::Prepare(call) => {
                let span = spans::prepare(&call);
                self.prepare(book, call).instrument(span).await
            }
            Command::Call(call) => {
                let (class, asked) = (call.class, self.shift.now());
                let span = spans::step(&call);
                let action = self.action(book, &call)?;
                // What computes for a moment waits for nobody: no future is made for it.
                let said = match span.in_scope(|| self.compute(book, &action, &call)).transpose() {
                    Some(said) => said,
                    None => self.call(book, &action, &call).instrument(span).await,
                };
                self.executed(class, asked);
                self.answered(book, call, said?).await
            }
            Command::Transact(call) => {
                let (span, asked) = (spans::step(&call), self.shift.now());
                let done = Box::pin(self.transact(book, call)).instrument(span).await;
                self.executed(EffectClass::Transactional, asked);
                done
            }
            Command::Reconcile(call) => {
                let span = spans::reconcile(&call);
                Box::pin(self.reconcile(book, call)).instrument(span).await
            }
            Command::Spawn(spawn) => Box::pin(self.spawn(book, spawn)).await,
            Command::Collect(collect) => Box::pin(self.collect(collect)).await,
        }
    }

    fn executed(&self, class: EffectClass, asked: Micros) {
        let took = minus(self.shift.now(), asked);
        self.engine.measure(Measure::Executed { class, took });
    }

    /// Decides about an input and makes the facts as durable as the decision asks. An answer in hand is kept until it
    /// is recorded: after a conflict or a takeover it is decided again, and its action is not called again.
    async fn record(
        &self,
        book: &mut Book<S::Tx>,
        mut input: Input,
    ) -> Result<Option<Command>, Left> {
        let mut with_mark = true;
        loop {
            let at = self.shift.now();
            let now = book.time.at(at);
            let decision = match decide(&book.held, &book.plan.plan, input.clone(), now) {
                Ok(decision) => decision,
                Err(rejection) => return rejected(book, &input, &rejection),
            };
            book.rejections = 0;
            if decision.durability == Durability::Lazy {
                book.accept(decision.facts, at).map_err(defect)?;
                if book.pending.is_due(at) {
                    self.flush(book).await?;
                }
                return opened(book, decision.command);
            }
            let lazy = book.pending.facts.len();
            let ahead = self.go_on(book, decision, now, with_mark)?;
            if !book.pending.is_empty() {
                match self.commit(book, lazy).await? {
                    Written::Stored => {}
                    Written::Changed => continue,
                    Written::TakenOver => {
                        input = after_takeover(book, input, ahead.marked);
                        continue;
                    }
                    Written::OverBudget(exceeded) => {
                        input = input.over_budget(&exceeded).ok_or_else(|| defect(exceeded))?;
                        continue;
                    }
                    // Whatever is wrong, it is not said of a step that it is not about.
                    Written::Refused(_) if ahead.took_mark_along => {
                        with_mark = false;
                        continue;
                    }
                    Written::Refused(why) => {
                        input = refused(input, &why)?;
                        continue;
                    }
                }
            }
            return opened(book, ahead.command);
        }
    }

    /// Keeps the folded run in case it comes back.
    fn remember(&self, book: Book<S::Tx>) {
        if !book.is_settled() {
            return;
        }
        let weight = book.held.run.journal_bytes.saturating_add(4_096);
        let cached = Cached { held: book.held, plan: book.plan };
        let mut held = self.engine.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        held.put(self.hold.run(), cached, weight);
    }
}

/// A rejected answer is normal life: what it is about was settled meanwhile.
fn rejected<Tx>(
    book: &mut Book<Tx>,
    input: &Input,
    rejection: &Rejection,
) -> Result<Option<Command>, Left> {
    book.rejections += 1;
    tracing::debug!(run = %book.held.run.id, %rejection, "an input has no effect");
    if matches!(input, Input::Advance) || book.rejections > REJECTIONS_MAX {
        return Err(Left::LetGo(rejection.to_string()));
    }
    Ok(None)
}

/// The commit in doubt is final now. One case needs more than to decide again: the mark of a call that was never
/// made landed, and only this driver could have made the call.
fn after_takeover<Tx>(book: &Book<Tx>, input: Input, marked: Option<StepKey>) -> Input {
    match marked {
        Some(step) if book.has_open_mark(&step) => {
            Input::Answer { step, answer: Answer::NotCalled }
        }
        Some(_) | None => input,
    }
}

fn opened<Tx>(book: &Book<Tx>, command: Sealed) -> Result<Option<Command>, Left> {
    command.open(&book.receipt).map_err(|sealed| defect(sealed.to_string()))
}

/// The store will not take this outcome, though it takes others.
fn refused(input: Input, why: &str) -> Result<Input, Left> {
    match input {
        Input::Answer { step, answer: Answer::Succeeded { output } } => {
            let text = format!("the store refused the output: {why}");
            let error = Failure::new(surefoot_kernel_core::Code::OUTPUT_INVALID, text);
            let evidence = output::evidence(&output);
            Ok(Input::Answer { step, answer: Answer::OutputRefused { error, evidence } })
        }
        Input::Advance
        | Input::Prepared { .. }
        | Input::Worked { .. }
        | Input::Resolved { .. }
        | Input::Answer { .. }
        | Input::Reconciled { .. }
        | Input::Spawned { .. }
        | Input::Joined { .. }
        | Input::Row(_) => Err(Left::LetGo(format!("the store refused the commit: {why}"))),
    }
}

/// What only a defect of this program brings about: nothing is written, the lease lapses, another worker may do
/// better.
fn defect(what: impl std::fmt::Display) -> Left {
    Left::LetGo(format!("the run and its facts do not fit: {what}"))
}
