//! Retries inside the process.

use std::time::Duration;

use surefoot_kernel_core::Cancel;
use surefoot_sync_core::RetryPolicy;

/// Tries something again, as its owner says that this is safe. Nothing of it is durable.
///
/// ```
/// use surefoot_worker::coordinate::Retry;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut tries = 0;
/// let answer = Retry::default()
///     .when(|error: &&str| *error == "busy")
///     .run(async || {
///         tries += 1;
///         if tries < 2 { Err("busy") } else { Ok(tries) }
///     })
///     .await;
/// assert_eq!(answer, Ok(2));
/// # }
/// ```
pub struct Retry<E> {
    policy: RetryPolicy,
    when: Ask<E, bool>,
    retry_after: Ask<E, Option<Duration>>,
    cancel: Cancel,
}

/// A question about an error.
type Ask<E, A> = Box<dyn Fn(&E) -> A + Send + Sync>;

/// Five attempts, for every error.
impl<E> Default for Retry<E> {
    fn default() -> Self {
        Self::new(RetryPolicy::default())
    }
}

impl<E> Retry<E> {
    /// By a policy, for every error.
    #[must_use]
    pub fn new(policy: RetryPolicy) -> Self {
        let (when, retry_after) = (Box::new(|_: &E| true), Box::new(|_: &E| None));
        Self { policy, when, retry_after, cancel: Cancel::default() }
    }

    /// Only for errors that pass; another one is returned at once.
    #[must_use]
    pub fn when(mut self, when: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        self.when = Box::new(when);
        self
    }

    /// Waits as long as the other side asks for, where it does.
    #[must_use]
    pub fn retry_after(
        mut self,
        retry_after: impl Fn(&E) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.retry_after = Box::new(retry_after);
        self
    }

    /// Waits no more, and makes no more attempts, once this fires.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Makes attempts until one succeeds, and returns the last error as it is otherwise. The first attempt is always
    /// made. Between two attempts others get to run, also where there is no wait. Cancel safe as far as `attempt` is.
    ///
    /// # Errors
    /// That of the last attempt.
    pub async fn run<T>(self, mut attempt: impl AsyncFnMut() -> Result<T, E>) -> Result<T, E> {
        let mut made = 0;
        loop {
            made += 1;
            let error = match attempt().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let asked = (self.retry_after)(&error);
            let wait = self.policy.after(made, fastrand::f64(), asked);
            let Some(wait) = wait.filter(|_| (self.when)(&error)) else { return Err(error) };
            tokio::task::yield_now().await;
            tokio::select! {
                biased;
                () = self.cancel.canceled() => return Err(error),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use surefoot_kernel_core::CancelSource;

    use super::*;

    fn at_once(attempts: u32) -> RetryPolicy {
        RetryPolicy::default().attempts(attempts).unwrap().waits(Duration::ZERO, Duration::ZERO)
    }

    /// Covers behaviour 213.
    #[tokio::test]
    async fn without_a_wait_others_run_between_the_tries_and_a_cancel_is_honoured() {
        let source = CancelSource::default();
        let (tries, others) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (seen, counted) = (tries.clone(), others.clone());
        let beside = {
            let source = source.clone();
            tokio::spawn(async move {
                while counted.fetch_add(1, Ordering::SeqCst) < 10 {
                    tokio::task::yield_now().await;
                }
                source.fire();
            })
        };
        let retry = Retry::new(at_once(u32::MAX)).cancel(source.observer());
        let failed = retry.run(async || {
            seen.fetch_add(1, Ordering::SeqCst);
            Err::<(), _>("busy")
        });
        assert_eq!(failed.await, Err("busy"));
        beside.await.unwrap();
        assert!(tries.load(Ordering::SeqCst) < 100, "it went on after the cancel");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_error_comes_back_as_it_is() {
        let mut tries = 0;
        let failed = Retry::default().run(async || {
            tries += 1;
            Err::<(), _>(tries)
        });
        assert_eq!(failed.await, Err(5));
        let mut tries = 0;
        let only_busy = Retry::default().when(|error: &&str| *error == "busy");
        let failed = only_busy.run(async || {
            tries += 1;
            Err::<(), _>("sold out")
        });
        assert_eq!((failed.await, tries), (Err("sold out"), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_other_side_asks_for_is_waited_for() {
        let began = tokio::time::Instant::now();
        let retry = Retry::new(at_once(2)).retry_after(|_| Some(Duration::from_secs(90)));
        let mut tries = 0;
        let done = retry.run(async || {
            tries += 1;
            if tries == 2 { Ok(()) } else { Err("429") }
        });
        assert_eq!(done.await, Ok(()));
        assert_eq!(began.elapsed().as_secs(), 90);
    }
}
