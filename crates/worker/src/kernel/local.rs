//! What one process knows of its own workers, and of who waits for its runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{Run, RunId, TxStore};
use tokio::sync::Notify;

use super::announcer::Announcer;
use crate::engine::{Engine, Reserved};

/// The local registry of a kernel. It only ever makes things faster: the store knows everything that counts.
pub(crate) struct Local<S: TxStore> {
    workers: Mutex<Vec<Weak<Engine<S>>>>,
    awaited: Mutex<HashMap<RunId, Vec<Arc<News>>>>,
    announcer: Option<Announcer>,
}

/// What somebody who waits for a run is told.
#[derive(Default)]
struct News {
    moved: Notify,
    /// The run as a worker of this process has left it since the wait began.
    left: Mutex<Option<Run>>,
}

impl<S: TxStore> Local<S> {
    pub(super) fn new(announcer: Option<Announcer>) -> Self {
        Self { workers: Mutex::default(), awaited: Mutex::default(), announcer }
    }

    pub(crate) fn add(&self, worker: &Arc<Engine<S>>) {
        let mut workers = lock(&self.workers);
        workers.retain(|known| known.strong_count() > 0);
        workers.push(Arc::downgrade(worker));
    }

    fn workers(&self) -> Vec<Arc<Engine<S>>> {
        lock(&self.workers).iter().filter_map(Weak::upgrade).collect()
    }

    /// Something may be ready to claim; `recover` if recovery has something to do as well.
    pub(crate) fn wake(&self, recover: bool) {
        self.workers().iter().for_each(|worker| worker.wake(recover));
        if let Some(announcer) = &self.announcer {
            announcer.announce();
        }
    }

    /// A version was published in this process.
    pub(crate) fn learn(&self, footprint: &Footprint) {
        self.workers().iter().for_each(|worker| worker.learn(footprint));
    }

    /// Cancel of a run was requested in this process.
    pub(crate) fn cancel(&self, run: RunId) {
        self.workers().iter().for_each(|worker| worker.cancel(run));
    }

    /// Slots for runs that an emit starts as running.
    pub(crate) fn reserve(&self) -> Option<Reserved<S>> {
        self.workers().iter().find_map(Engine::reserve)
    }

    /// Whether a worker of this process works on the run.
    pub(crate) fn holds(&self, run: RunId) -> bool {
        self.workers().iter().any(|worker| worker.holds(run))
    }

    /// A run was left by a worker of this process, stored like this.
    pub(crate) fn run_left(&self, run: &Run) {
        for news in lock(&self.awaited).get(&run.id).into_iter().flatten() {
            *lock(&news.left) = Some(run.clone());
            news.moved.notify_one();
        }
    }

    /// A run was moved by this process.
    pub(crate) fn run_moved(&self, run: RunId) {
        for news in lock(&self.awaited).get(&run).into_iter().flatten() {
            news.moved.notify_one();
        }
    }

    /// Hears of a run until the guard is dropped.
    pub(crate) fn hear_of(&self, run: RunId) -> Hearing<'_, S> {
        let news = Arc::<News>::default();
        lock(&self.awaited).entry(run).or_default().push(news.clone());
        Hearing { local: self, run, news }
    }
}

/// Hears of one run.
pub(crate) struct Hearing<'l, S: TxStore> {
    local: &'l Local<S>,
    run: RunId,
    news: Arc<News>,
}

impl<S: TxStore> Hearing<'_, S> {
    /// Completes once there is news since the last time. Cancel safe.
    pub(crate) async fn moved(&self) {
        self.news.moved.notified().await;
    }

    /// The run as it was left here since the last time.
    pub(crate) fn left(&self) -> Option<Run> {
        lock(&self.news.left).take()
    }
}

impl<S: TxStore> Drop for Hearing<'_, S> {
    fn drop(&mut self) {
        let mut all = lock(&self.local.awaited);
        if let Some(awaited) = all.get_mut(&self.run) {
            awaited.retain(|news| !Arc::ptr_eq(news, &self.news));
            if awaited.is_empty() {
                all.remove(&self.run);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
