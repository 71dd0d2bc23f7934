//! Code of the application may panic: that is an answer, not the end of a worker.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A panic in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Panicked(pub(crate) String);

impl Panicked {
    fn of(payload: &(dyn Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        Self(text.unwrap_or_else(|| "a value that is no text".to_owned()))
    }
}

/// A future whose panic is its output.
pub(crate) struct Caught<F>(Pin<Box<F>>);

/// Catches what panics inside a future. The future is not polled again after that, so what the panic left broken
/// inside it is never seen.
pub(crate) fn caught<F: Future>(future: F) -> Caught<F> {
    Caught(Box::pin(future))
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(Panicked::of(&*payload))),
        }
    }
}

/// The same for a plain call.
pub(crate) fn caught_call<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| Panicked::of(&*payload))
}
