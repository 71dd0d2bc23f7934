//! Values of the application's resolver: what is recorded is answered first, what is new is recorded before anything
//! can be sent that depends on it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use surefoot_kernel_core::{
    Call, Code, Commit, Fact, Input, StepValues, TxStore, ValueResolver, apply, decide,
};
use surefoot_language::Stop;
use tokio::sync::{mpsc, oneshot};

use super::book::Book;
use super::commit::{Trouble, Written, trouble};
use super::hooks::{Droppable, Heard};
use super::{Driver, Left};
use crate::builder::{Claim, NotYet, Values};
use crate::engine::hold::HookGuard;
use crate::engine::life::with_causes;

/// A value that a hook waits for until it is durable.
struct Ask {
    reference: String,
    value: Value,
    answer: oneshot::Sender<Result<Value, Stop>>,
}

/// What a call asks its driver to record while it goes on: nothing where no resolver could answer it.
pub(super) struct Asks(Option<mpsc::UnboundedReceiver<Ask>>);

impl Asks {
    async fn next(&mut self) -> Option<Ask> {
        self.0.as_mut()?.recv().await
    }
}

/// Values of one step, as one of its hooks sees them.
pub(super) struct Resolving {
    state: Mutex<State>,
    /// The driver, where a value must be durable before the hook sees it.
    driver: Option<mpsc::UnboundedSender<Ask>>,
}

/// What is known, recorded or not.
struct State {
    recorded: StepValues,
    known: StepValues,
}

impl Resolving {
    /// For hooks before a call, and for transactions: what is new is recorded with what comes of them.
    pub(super) fn gather<Tx>(book: &Book<Tx>) -> Arc<Self> {
        Self::new(book, None)
    }

    /// For a call that may send something as soon as it has a value.
    pub(super) fn at_once<Tx>(book: &Book<Tx>, values: Option<&Values>) -> (Arc<Self>, Asks) {
        let (driver, asks) = values.map(|_| mpsc::unbounded_channel()).unzip();
        (Self::new(book, driver), Asks(asks))
    }

    fn new<Tx>(book: &Book<Tx>, driver: Option<mpsc::UnboundedSender<Ask>>) -> Arc<Self> {
        let recorded = book.held.cursor.values().clone();
        let state = Mutex::new(State { known: recorded.clone(), recorded });
        Arc::new(Self { state, driver })
    }

    /// What was resolved and is not recorded yet.
    pub(super) fn gathered(&self) -> StepValues {
        let state = self.state();
        state.known.clone().unknown_to(&state.recorded)
    }

    /// A value that is recorded, or was resolved already.
    pub(super) fn known(&self, reference: &str) -> Option<Value> {
        self.state().known.get(reference).cloned()
    }

    async fn admit(&self, reference: &str, value: Value) -> Result<Value, Stop> {
        if let Err(refused) = self.state().known.admit(reference, &value) {
            return Err(Stop::fail(refused.code, refused.message));
        }
        let value = match &self.driver {
            Some(driver) => recorded(driver, reference, value).await?,
            None => value,
        };
        let mut state = self.state();
        state.known.keep(reference, value.clone());
        // Another branch of the same hook may have been quicker.
        Ok(state.known.get(reference).cloned().unwrap_or(value))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn recorded(
    driver: &mpsc::UnboundedSender<Ask>,
    reference: &str,
    value: Value,
) -> Result<Value, Stop> {
    let (answer, answered) = oneshot::channel();
    let gone = || Stop::retry(Code::VALUE_UNAVAILABLE, "the call is over: nothing is resolved");
    driver.send(Ask { reference: reference.to_owned(), value, answer }).map_err(|_| gone())?;
    answered.await.unwrap_or_else(|_| Err(gone()))
}

/// What answers `cx.resolve(..)` of one hook where nothing is recorded.
pub(super) struct Source {
    pub(super) values: Values,
    pub(super) claim: Claim,
    pub(super) resolver: Arc<OnceLock<Arc<dyn ValueResolver>>>,
    pub(super) resolving: Arc<Resolving>,
}

impl Source {
    /// A value of the application's. `None` is missing, and is not recorded: it may come.
    pub(super) async fn resolve(&self, reference: &str) -> Result<Option<Value>, Stop> {
        let resolver = self.resolver.get_or_init(|| (self.values)(&self.claim)).clone();
        match resolver.resolve(reference).await {
            Ok(Some(value)) => self.resolving.admit(reference, value).await.map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(match error.downcast::<NotYet>() {
                Ok(not_yet) => Stop::wait_for(not_yet.0),
                Err(error) => Stop::from(error),
            }),
        }
    }
}

impl<S: TxStore> Driver<S> {
    /// What hooks before a call resolved is durable with the next commit, which comes before the call.
    pub(super) async fn gathered(
        &self,
        book: &mut Book<S::Tx>,
        call: &Call,
        resolving: &Resolving,
    ) -> Result<(), Left> {
        let values = resolving.gathered();
        if values.is_empty() {
            return Ok(());
        }
        let input = Input::Resolved { step: call.step.clone(), values };
        Box::pin(self.record(book, input)).await.map(|_| ())
    }

    /// Waits for a call that may resolve values, and records each before the call sees it. The call goes on
    /// meanwhile; a commit that has begun is ended even if the call is over first.
    pub(super) async fn listen_resolving<T>(
        &self,
        book: &mut Book<S::Tx>,
        (call, guard): (&Call, &HookGuard),
        mut asks: Asks,
        hook: impl Future<Output = T> + Send,
    ) -> Result<Heard<T>, Left> {
        let waiting = self.listen(guard, call.timeout, Droppable::Yes, hook);
        tokio::pin!(waiting);
        loop {
            let ask = tokio::select! {
                biased;
                heard = &mut waiting => return heard,
                Some(ask) = asks.next() => ask,
            };
            let mut recording = Box::pin(self.record_value(book, call, ask));
            tokio::select! {
                biased;
                heard = &mut waiting => {
                    recording.await?;
                    return heard;
                }
                recorded = &mut recording => recorded?,
            }
        }
    }

    /// Answers with the value that is durable now: this one, or the one that was recorded first.
    async fn record_value(
        &self,
        book: &mut Book<S::Tx>,
        call: &Call,
        ask: Ask,
    ) -> Result<(), Left> {
        let Ask { reference, value, answer } = ask;
        let mut values = StepValues::default();
        values.keep(reference.as_str(), value);
        let refused = loop {
            if let Some(known) = book.held.cursor.values().get(&reference) {
                // A hook that does not wait any more needs no answer.
                let _ = answer.send(Ok(known.clone()));
                return Ok(());
            }
            let input = Input::Resolved { step: call.step.clone(), values: values.clone() };
            let now = book.now(&*self.shift.clock);
            let facts = match decide(&book.held, &book.plan.plan, input, now) {
                Ok(decision) => decision.facts,
                Err(rejection) => break rejection.to_string(),
            };
            if let Some(why) = self.commit_values(book, facts).await? {
                break why;
            }
        };
        let text = format!(
            "the value of `{reference}` could not be journaled, so it is not used: {refused}; resolve values before the action opens a transaction of its own"
        );
        let _ = answer.send(Err(Stop::retry(Code::VALUE_UNAVAILABLE, text)));
        Ok(())
    }

    /// Tries once: what stands in the way may be a transaction of the very hook that waits. `Some` says why nothing
    /// was written.
    async fn commit_values(
        &self,
        book: &mut Book<S::Tx>,
        facts: Vec<Fact>,
    ) -> Result<Option<String>, Left> {
        let after = facts.iter().fold(book.held.run.clone(), apply);
        let commit = Commit::of(book.before, after, &facts);
        let asked = self.shift.now();
        let error = match self.engine.kernel.store().run_commit(commit).await {
            Ok(committed) => {
                self.stored(book, (committed, asked), &facts, &facts)?;
                return Ok(None);
            }
            Err(error) => error,
        };
        if matches!(trouble(&error), Trouble::Later) {
            return Ok(Some(with_causes(&error)));
        }
        Ok(match self.overcome(book, &error).await? {
            Written::Stored | Written::Changed | Written::TakenOver => None,
            Written::OverBudget(exceeded) => Some(exceeded.to_string()),
            Written::Refused(why) => Some(why),
        })
    }
}
