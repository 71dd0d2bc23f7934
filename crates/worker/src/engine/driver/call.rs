//! Calls `run` of pure, idempotent and ambiguous actions.

use std::sync::Arc;

use serde_json::Value;
use surefoot_kernel_core::{Answer, Call, Input, StepKey, TxStore};
use surefoot_language::{
    Action, AmbiguousStop, DynAmbiguous, DynIdempotent, DynPure, Halt, HookError, Object,
    SharedFence, StepCx,
};

use super::answers::{
    Said, Told, after_token, config_invalid, of_ambiguous, of_error, over_time, panicked,
    timed_out, unkept,
};
use super::book::Book;
use super::context::Heeds;
use super::hooks::{Droppable, Heard};
use super::output::judged;
use super::values::Resolving;
use super::{Driver, Left, defect};
use crate::engine::hold::HookGuard;
use crate::engine::pace::part;
use crate::engine::panics::caught_call;

impl<S: TxStore> Driver<S> {
    /// Calls an action that is pure and light, on the spot; `None` for any other.
    pub(super) fn compute(
        &self,
        book: &mut Book<S::Tx>,
        action: &Action<S::Tx>,
        call: &Call,
    ) -> Result<Option<Said>, Left> {
        let Object::Pure(pure) = action.object() else { return Ok(None) };
        if pure.is_heavy() {
            return Ok(None);
        }
        // The guard is held until the action is back.
        let (_guard, cx) = match self.begin_pure(book, action, call)? {
            Ok(begun) => begun,
            Err(said) => return Ok(Some(said)),
        };
        let heard = match caught_call(|| pure.run(&cx, &call.config)) {
            Ok(value) => Heard::Back { value, told: Told::Nothing },
            Err(panicked) => Heard::Panicked(panicked.0),
        };
        Ok(Some(self.said(book, action, call, heard)))
    }

    /// Calls any other action, and waits for its answer.
    pub(super) async fn call(
        &self,
        book: &mut Book<S::Tx>,
        action: &Action<S::Tx>,
        call: &Call,
    ) -> Result<Said, Left> {
        match action.object() {
            Object::Pure(pure) => Box::pin(self.call_heavy(book, action, pure, call)).await,
            Object::Idempotent(object) => self.call_idempotent(book, action, object, call).await,
            Object::Ambiguous(object) => self.call_ambiguous(book, action, object, call).await,
            Object::Transactional(_) => {
                Err(defect("a transactional action is called without a transaction"))
            }
        }
    }

    /// What the core is told of the answer.
    pub(super) async fn answered(
        &self,
        book: &mut Book<S::Tx>,
        call: Call,
        said: Said,
    ) -> Result<Input, Left> {
        let answer = match said {
            Said::Answer(answer) => answer,
            Said::Halted(halt) => match self.halted(book, halt).await? {
                Some(answer) => answer,
                None => return Ok(Input::Advance),
            },
        };
        Ok(Input::Answer { step: call.step, answer })
    }

    pub(super) fn tell_start(&self, call: &Call) {
        let run = self.hold.run();
        self.engine.observe(|trace| trace.step_started(run, &call.step, call.attempt));
    }

    /// The context of a pure action's call; or what is said instead, without one.
    fn begin_pure(
        &self,
        book: &mut Book<S::Tx>,
        action: &Action<S::Tx>,
        call: &Call,
    ) -> Result<Result<(HookGuard, StepCx), Said>, Left> {
        self.still_ours()?;
        if let Err(findings) = action.validate_input(&call.config) {
            return Ok(Err(Said::Answer(config_invalid(&findings))));
        }
        let guard = self.hold.begin_hook(true);
        let nothing = Resolving::gather(book);
        let cx = self.context(book, call, &guard, Heeds::Cancel, call.timeout, nothing);
        self.tell_start(call);
        Ok(Ok((guard, cx)))
    }

    /// On a thread for computations. What is pending meanwhile does not wait longer than it may.
    async fn call_heavy(
        &self,
        book: &mut Book<S::Tx>,
        action: &Action<S::Tx>,
        pure: &Arc<dyn DynPure>,
        call: &Call,
    ) -> Result<Said, Left> {
        let (guard, cx) = match self.begin_pure(book, action, call)? {
            Ok(begun) => begun,
            Err(said) => return Ok(said),
        };
        let (pure, config) = (pure.clone(), call.config.clone());
        let computing = tokio::task::spawn_blocking(move || pure.run(&cx, &config));
        let waiting = self.listen(&guard, call.timeout, Droppable::No, computing);
        tokio::pin!(waiting);
        let heard = loop {
            let due = book.pending.due_at();
            tokio::select! {
                biased;
                heard = &mut waiting => break heard?,
                () = self.sleep_until(due), if due.is_some() => self.flush(book).await?,
            }
        };
        let heard = match heard {
            Heard::Back { value: Ok(value), told } => Heard::Back { value, told },
            Heard::Back { value: Err(joined), .. } => Heard::Panicked(joined.to_string()),
            Heard::Panicked(text) => Heard::Panicked(text),
            Heard::TimedOut => Heard::TimedOut,
        };
        Ok(self.said(book, action, call, heard))
    }

    async fn call_idempotent(
        &self,
        book: &mut Book<S::Tx>,
        action: &Action<S::Tx>,
        object: &Arc<dyn DynIdempotent<SharedFence<S::Tx>>>,
        call: &Call,
    ) -> Result<Said, Left> {
        self.still_ours()?;
        let guard = self.hold.begin_hook(true);
        let (resolving, asks) = Resolving::at_once(book, self.engine.settings.values.as_ref());
        let cx = self.context(book, call, &guard, Heeds::Cancel, call.timeout, resolving);
        let fence = self.fence();
        self.tell_start(call);
        let hook = async { object.run(&cx, fence, &call.config).await };
        let heard = self.listen_resolving(book, (call, &guard), asks, hook).await?;
        Ok(self.said(book, action, call, heard))
    }

    /// What a hook that is no ambiguous one means by its end.
    fn said(
        &self,
        book: &Book<S::Tx>,
        action: &Action<S::Tx>,
        call: &Call,
        heard: Heard<Result<Value, HookError>>,
    ) -> Said {
        match heard {
            Heard::Back { value: Ok(output), .. } => Said::Answer(kept(action, output)),
            Heard::Back { value: Err(error), told } => {
                after_token(of_error(error, book.plan.module.classifiers()), told, call)
            }
            Heard::Panicked(text) => Said::Answer(panicked(&text)),
            Heard::TimedOut => Said::Answer(timed_out(call)),
        }
    }

    async fn call_ambiguous(
        &self,
        book: &mut Book<S::Tx>,
        action: &Action<S::Tx>,
        object: &Arc<dyn DynAmbiguous<SharedFence<S::Tx>>>,
        call: &Call,
    ) -> Result<Said, Left> {
        // The mark took its time. A call that may outlive its lease is not made.
        if self.hold.is_lost() {
            return Err(Left::Lost);
        }
        if self.hold.remaining() < part(self.engine.settings.lease, 5)
            || self.is_mark_old(book, &call.step)
        {
            return Ok(Said::Answer(Answer::NotCalled));
        }
        let guard = self.hold.begin_hook(true);
        let (resolving, asks) = Resolving::at_once(book, self.engine.settings.values.as_ref());
        let cx = self.context(book, call, &guard, Heeds::Cancel, call.timeout, resolving);
        let fence = self.fence();
        self.tell_start(call);
        let hook = async { object.run(&cx, fence, &call.config).await };
        let heard = self.listen_resolving(book, (call, &guard), asks, hook).await?;
        let unknown = |message: String| Said::Answer(Answer::Unknown { message, evidence: None });
        let said = match heard {
            Heard::Back { value, .. } => self.ambiguous_said(book, action, value),
            Heard::Panicked(text) => unknown(format!("the action panicked: {text}")),
            Heard::TimedOut => unknown(over_time(call)),
        };
        // The mark stays open, and is explained before the cancel is honoured.
        Ok(match said {
            Said::Halted(Halt::Canceled) => {
                unknown("the call was stopped, since cancel was requested".to_owned())
            }
            said @ (Said::Answer(_) | Said::Halted(Halt::LeaseLost)) => said,
        })
    }

    /// Whether the mark was decided so long ago that a call under it would begin late in the time for which the provider's
    /// `NotFound` proves nothing: that time is counted from the mark, and is two leases at least.
    fn is_mark_old(&self, book: &Book<S::Tx>, step: &StepKey) -> bool {
        let clock = &**self.engine.kernel.clock();
        let age = book.marked_at(step).map(|at| book.time.since_at_most(at, clock));
        age.is_some_and(|age| age > part(self.engine.settings.lease, 2))
    }

    fn ambiguous_said(
        &self,
        book: &Book<S::Tx>,
        action: &Action<S::Tx>,
        value: Result<Value, HookError<AmbiguousStop>>,
    ) -> Said {
        match value {
            Ok(output) => Said::Answer(kept(action, output)),
            Err(error) => of_ambiguous(error, book.plan.module.classifiers()),
        }
    }
}

/// An output, if it can be kept.
pub(super) fn kept<Tx>(action: &Action<Tx>, output: Value) -> Answer {
    match judged(action, &output) {
        Ok(()) => Answer::Succeeded { output },
        Err(refused) => unkept(*refused),
    }
}
