//! Hooks that are interrupted, and contexts with and without a store.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use surefoot_kernel_core::{BoxFuture, Fence, FenceError};
use surefoot_language::{
    ActionResult, AmbiguousCx, AnyStore, Binding, Classifiers, IdempotentCx, On, StepCx, StopParts,
};

/// Lets a future go on until it has paused so often; `None` if it is not done then. What pauses is dropped by the
/// caller: that is the crash.
pub(super) async fn up_to<F: Future + ?Sized>(
    mut future: Pin<&mut F>,
    pauses: usize,
) -> Option<F::Output> {
    let mut left = pauses;
    poll_fn(move |cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left = left.saturating_sub(1);
            Poll::Pending
        }
    })
    .await
}

/// Whether a step is over for now: it has an output, or it waits. Else why not.
pub(super) fn is_done<T>(answer: ActionResult<T>) -> Result<(), String> {
    let Err(stop) = answer else { return Ok(()) };
    match stop.into_parts(&Classifiers::default()) {
        StopParts::Waiting(_) => Ok(()),
        StopParts::Failed { code, message, .. } => Err(format!("{code}: {message}")),
        StopParts::Halted(halt) => Err(format!("it stopped by the fence: {halt:?}")),
    }
}

/// What the fence of a drill says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Go on.
    Yes,
    /// Another worker has the run.
    LeaseLost,
}

impl<Tx: Send> Fence<Tx> for Says {
    fn hold<'a>(&'a self, _: &'a mut Tx) -> BoxFuture<'a, Result<(), FenceError>> {
        let answer = match self {
            Self::Yes => Ok(()),
            Self::LeaseLost => Err(FenceError::LeaseLost),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// The contexts of actions, by what they ask of a store.
pub trait Contexts: Binding {
    /// Whether the action has a fence at all.
    #[doc(hidden)]
    const IS_FENCED: bool;
    #[doc(hidden)]
    fn idempotent_cx(step: StepCx, fence: Says) -> IdempotentCx<Self>;
    #[doc(hidden)]
    fn ambiguous_cx(step: StepCx, fence: Says) -> AmbiguousCx<Self>;
}

impl Contexts for AnyStore {
    const IS_FENCED: bool = false;

    fn idempotent_cx(step: StepCx, _: Says) -> IdempotentCx {
        IdempotentCx::unfenced(step)
    }

    fn ambiguous_cx(step: StepCx, _: Says) -> AmbiguousCx {
        AmbiguousCx::unfenced(step)
    }
}

impl<Tx: Send + 'static> Contexts for On<Tx> {
    const IS_FENCED: bool = true;

    fn idempotent_cx(step: StepCx, fence: Says) -> IdempotentCx<Self> {
        IdempotentCx::fenced(step, Arc::new(fence))
    }

    fn ambiguous_cx(step: StepCx, fence: Says) -> AmbiguousCx<Self> {
        AmbiguousCx::fenced(step, Arc::new(fence))
    }
}
