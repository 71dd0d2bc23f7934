//! A cancellation token of our own: no runtime, and no foreign 0.x type in the public API.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Debug, Default)]
struct Shared {
    fired: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

/// The observing side: fires when the lease is lost, cancel is requested or the step timed out.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<Shared>);

/// The firing side, held by the worker.
#[derive(Debug, Clone, Default)]
pub struct CancelSource(Arc<Shared>);

impl CancelSource {
    /// A token that fires when this source does.
    #[must_use]
    pub fn observer(&self) -> Cancel {
        Cancel(self.0.clone())
    }

    /// Fires, once and for ever; further calls change nothing.
    pub fn fire(&self) {
        self.0.fired.store(true, Ordering::SeqCst);
        let wakers =
            std::mem::take(&mut *self.0.wakers.lock().unwrap_or_else(PoisonError::into_inner));
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Cancel {
    /// Whether it has fired.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.0.fired.load(Ordering::SeqCst)
    }

    /// Completes when it fires. Cancel safe: usable as a `select!` branch any number of times.
    pub fn canceled(&self) -> impl Future<Output = ()> + Send + use<> {
        Canceled(self.0.clone())
    }
}

struct Canceled(Arc<Shared>);

impl Future for Canceled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut wakers = self.0.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.fired.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_once_and_wakes_who_waits() {
        let source = CancelSource::default();
        let token = source.observer();
        let mut waiting = Box::pin(token.canceled());
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Pending);
        assert!(!token.is_canceled());
        source.fire();
        assert!(token.is_canceled());
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Ready(()));
        assert_eq!(Box::pin(token.canceled()).as_mut().poll(&mut cx), Poll::Ready(()));
    }
}
