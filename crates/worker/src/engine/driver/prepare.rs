//! Everything between a resolved config and the call: schema, then the application's authorize, then the action's.

use std::future::Future;
use std::sync::Arc;

use surefoot_kernel_core::{Amounts, Answer, Call, Code, Input, Prepared, TxStore};
use surefoot_language::{Access, Action, Classifiers, DynEffect, Halt, HookError, StepCx};

use super::answers::{Said, config_invalid, failed, of_error, panicked};
use super::book::Book;
use super::context::Heeds;
use super::hooks::{Droppable, Heard};
use super::values::Resolving;
use super::{Driver, Left};
use crate::builder::Gate;
use crate::engine::hold::HookGuard;
use crate::engine::panics::caught_call;

/// What came of a check before a call.
pub(super) enum Checked {
    /// Nothing is against it, and this is what it costs.
    Ready(Amounts),
    Stopped(Said),
}

impl<S: TxStore> Driver<S> {
    pub(super) async fn prepare(&self, book: &mut Book<S::Tx>, call: Call) -> Result<Input, Left> {
        let action = self.action(book, &call)?;
        self.still_ours()?;
        let guard = self.hold.begin_hook(true);
        let resolving = Resolving::gather(book);
        let cx = self.context(book, &call, &guard, Heeds::Cancel, None, resolving.clone());
        let plan = book.plan.clone();
        let judged = (&action, plan.module.classifiers());
        let result = match self.check(judged, &call, &cx, &guard).await? {
            Checked::Ready(cost) => {
                self.gathered(book, &call, &resolving).await?;
                Prepared::Ready { cost }
            }
            Checked::Stopped(Said::Answer(answer)) => Prepared::Stopped(answer),
            Checked::Stopped(Said::Halted(halt)) => match self.halted(book, halt).await? {
                Some(answer) => Prepared::Stopped(answer),
                None => return Ok(Input::Advance),
            },
        };
        Ok(Input::Prepared { step: call.step, result })
    }

    /// The checks in their order; the first that stops, stops.
    pub(super) async fn check(
        &self,
        (action, classifiers): (&Action<S::Tx>, &Classifiers),
        call: &Call,
        cx: &StepCx,
        guard: &HookGuard,
    ) -> Result<Checked, Left> {
        if let Err(findings) = action.validate_input(&call.config) {
            return Ok(Checked::Stopped(Said::Answer(config_invalid(&findings))));
        }
        if let Some(authorize) = &self.engine.settings.authorize {
            let gate = Gate {
                step: cx.clone(),
                action: call.action.clone(),
                class: call.class,
                input: Arc::new(call.config.clone()),
            };
            let asked = async { authorize(gate).await.map_err(HookError::Stopped) };
            if let Some(said) = self.access(classifiers, guard, asked).await? {
                return Ok(Checked::Stopped(said));
            }
        }
        if let Some(effect) = action.object().effect() {
            let asked = async { effect.authorize(cx, &call.config).await };
            if let Some(said) = self.access(classifiers, guard, asked).await? {
                return Ok(Checked::Stopped(said));
            }
            return Ok(match cost_of(effect, call) {
                Ok(cost) => Checked::Ready(cost),
                Err(answer) => Checked::Stopped(Said::Answer(*answer)),
            });
        }
        Ok(Checked::Ready(Amounts::default()))
    }

    async fn access(
        &self,
        classifiers: &Classifiers,
        guard: &HookGuard,
        asked: impl Future<Output = Result<Access, HookError>> + Send,
    ) -> Result<Option<Said>, Left> {
        let answer = match self.listen(guard, None, Droppable::Yes, asked).await? {
            Heard::Back { value, .. } => value,
            Heard::Panicked(text) => return Ok(Some(Said::Answer(panicked(&text)))),
            // Without a limit no time is up.
            Heard::TimedOut => return Ok(None),
        };
        Ok(match answer {
            Ok(Access::Allowed) => None,
            Ok(Access::Denied { why }) => Some(Said::Answer(failed(Code::FORBIDDEN, why))),
            Err(error) => Some(of_error(error, classifiers)),
        })
    }

    /// The fence told an action to stop. Without an answer the run is looked at again.
    pub(super) async fn halted(
        &self,
        book: &mut Book<S::Tx>,
        halt: Halt,
    ) -> Result<Option<Answer>, Left> {
        match halt {
            Halt::LeaseLost => Err(Left::Lost),
            Halt::Canceled => {
                Box::pin(self.reload(book)).await?;
                if book.held.run.cancel.is_some() {
                    return Ok(None);
                }
                let text = "the action says that cancel was requested, but it was not";
                Ok(Some(super::answers::failed_for_now(Code::ACTION_ERROR, text)))
            }
        }
    }

    /// No hook begins once the lease is over.
    pub(super) fn still_ours(&self) -> Result<(), Left> {
        if self.hold.is_lost() {
            Err(Left::Lost)
        } else if self.hold.is_alive() {
            Ok(())
        } else {
            Err(Left::LetGo("the lease is over".to_owned()))
        }
    }
}

/// What a call charges. A cost that is no amount is a defect of the action: nothing is charged, nothing called.
pub(crate) fn cost_of(effect: &dyn DynEffect, call: &Call) -> Result<Amounts, Box<Answer>> {
    let asked =
        caught_call(|| effect.cost(&call.config)).map_err(|text| Box::new(panicked(&text.0)))?;
    let cost = asked.map_err(|error| Box::new(failed(error.code(), error.to_string())))?;
    Amounts::of(cost.amounts()).map_err(|odd| {
        let text = format!("the cost of action `{}` cannot be charged: {odd}", call.action);
        Box::new(failed(Code::ACTION_ERROR, text))
    })
}
