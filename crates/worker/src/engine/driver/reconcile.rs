//! Asks what became of an effect.

use serde_json::Value;
use surefoot_kernel_core::{Call, Failure, Input, ReconcileAnswer, TxStore};
use surefoot_language::{Action, Classifiers, Halt, HookError, Object, Reconciled, StopParts};

use super::answers::over_time;
use super::book::Book;
use super::context::Heeds;
use super::hooks::{Droppable, Heard};
use super::output::judged;
use super::values::Resolving;
use super::{Driver, Left, defect};

impl<S: TxStore> Driver<S> {
    pub(super) async fn reconcile(
        &self,
        book: &mut Book<S::Tx>,
        call: Call,
    ) -> Result<Input, Left> {
        let action = self.action(book, &call)?;
        let Object::Ambiguous(object) = action.object() else {
            return Err(defect("only an ambiguous action reconciles"));
        };
        self.still_ours()?;
        // A cancel request does not stop the question: the effect is explained first, then the run is canceled.
        let guard = self.hold.begin_hook(false);
        // A question sends no request: what is new in it is not recorded.
        let resolving = Resolving::gather(book);
        let cx = self.context(book, &call, &guard, Heeds::LeaseOnly, call.timeout, resolving);
        let fence = self.fence();
        let hook = async { object.reconcile(&cx, fence, &call.config).await };
        let heard = self.listen(&guard, call.timeout, Droppable::Yes, hook).await?;
        let classifiers = book.plan.module.classifiers();
        let answer = match heard {
            Heard::Back { value: Ok(found), .. } => found_out(&action, found),
            Heard::Back { value: Err(error), .. } => not_found_out(error, classifiers)?,
            Heard::Panicked(text) => error(format!("`reconcile` panicked: {text}")),
            Heard::TimedOut => error(over_time(&call)),
        };
        Ok(Input::Reconciled { step: call.step, answer })
    }
}

fn error(message: String) -> ReconcileAnswer {
    ReconcileAnswer::Error { message, retry_after: None }
}

fn found_out<Tx>(action: &Action<Tx>, found: Reconciled<Value>) -> ReconcileAnswer {
    match found {
        Reconciled::Succeeded(output) => match judged(action, &output) {
            Ok(()) => ReconcileAnswer::Succeeded { output },
            Err(unkept) => {
                ReconcileAnswer::OutputRefused { error: unkept.error, evidence: unkept.evidence }
            }
        },
        Reconciled::Failed { code, message } => {
            ReconcileAnswer::Failed { failure: Failure::new(code, message) }
        }
        Reconciled::NotFound => ReconcileAnswer::NotFound,
        Reconciled::Unknown { why } => ReconcileAnswer::Unknown { why },
    }
}

/// Why asking failed; or that the lease is lost.
fn not_found_out(failed: HookError, classifiers: &Classifiers) -> Result<ReconcileAnswer, Left> {
    let stop = match failed {
        HookError::Input(input) => return Ok(error(input.to_string())),
        HookError::Output(output) => {
            let error = Failure::new(output.code(), output.to_string());
            let evidence = String::new();
            return Ok(ReconcileAnswer::OutputRefused { error, evidence });
        }
        HookError::Stopped(stop) => stop,
    };
    Ok(match stop.into_parts(classifiers) {
        StopParts::Halted(Halt::LeaseLost) => return Err(Left::Lost),
        StopParts::Halted(Halt::Canceled) => {
            error("`reconcile` stopped, since cancel was requested".to_owned())
        }
        StopParts::Waiting(on) => {
            error(format!("`reconcile` cannot wait for `{}` of `{}`", on.kind(), on.key()))
        }
        StopParts::Failed { code, message, retry_after, .. } => {
            ReconcileAnswer::Error { message: format!("{code}: {message}"), retry_after }
        }
    })
}
