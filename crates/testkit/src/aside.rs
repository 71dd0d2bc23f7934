//! Calls to a store that does real IO, made from where time is paused.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio::runtime::Handle;

/// A runtime of its own for a store whose calls take real time, under a test whose time is paused: while a call is under
/// way, paused time stands still, and the store's own timers run as they do in production.
#[derive(Debug, Clone)]
pub struct Aside(Handle);

tokio::task_local! {
    static VISIT: Arc<Visit>;
}

#[derive(Debug)]
struct Visit {
    home: Handle,
    /// Paused time stands still as long as it is there.
    standstill: Mutex<Option<Standstill>>,
}

/// Time that is paused does not move on while a blocking task is under way: one that waits for this to be dropped.
#[derive(Debug)]
struct Standstill(#[expect(dead_code, reason = "dropped")] mpsc::Sender<()>);

impl Standstill {
    fn of(home: &Handle) -> Self {
        let (held, end) = mpsc::channel();
        // Its answer is that there is none any more.
        drop(home.spawn_blocking(move || end.recv().is_ok()));
        Self(held)
    }
}

impl Visit {
    fn stand_still(&self, stands: bool) {
        let standstill = stands.then(|| Standstill::of(&self.home));
        *self.standstill.lock().unwrap_or_else(PoisonError::into_inner) = standstill;
    }
}

impl Aside {
    /// What is polled there finds this runtime.
    #[must_use]
    pub fn new(runtime: &Handle) -> Self {
        Self(runtime.clone())
    }

    /// Makes a call.
    pub async fn call<T>(&self, call: impl Future<Output = T> + Send) -> T {
        let visit = Arc::new(Visit { home: Handle::current(), standstill: Mutex::default() });
        visit.stand_still(true);
        VISIT.scope(visit, on(&self.0, call)).await
    }
}

/// A part of a call that belongs to whoever made it: it is polled there, and time goes on.
pub(crate) async fn at_home<T>(part: impl Future<Output = T> + Send) -> T {
    let Ok(visit) = VISIT.try_with(Arc::clone) else { return part.await };
    visit.stand_still(false);
    let done = on(&visit.home, part).await;
    visit.stand_still(true);
    done
}

/// Polls on a runtime, from wherever it is awaited.
async fn on<T>(runtime: &Handle, future: impl Future<Output = T> + Send) -> T {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let _entered = runtime.enter();
        future.as_mut().poll(cx)
    })
    .await
}
