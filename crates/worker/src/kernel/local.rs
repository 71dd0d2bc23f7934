//! What one process knows of its own workers, and of who waits for its runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{RunId, TxStore};
use tokio::sync::Notify;

use super::announcer::Announcer;
use crate::engine::{Engine, Reserved};

/// The local registry of a kernel. It only ever makes things faster: the store knows everything that counts.
pub(crate) struct Local<S: TxStore> {
    workers: Mutex<Vec<Weak<Engine<S>>>>,
    awaited: Mutex<HashMap<RunId, Awaited>>,
    announcer: Option<Announcer>,
}

struct Awaited {
    left: Arc<Notify>,
    by: usize,
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

    /// A run was left by a worker of this process, or moved by it.
    pub(crate) fn run_left(&self, run: RunId) {
        if let Some(awaited) = lock(&self.awaited).get(&run) {
            awaited.left.notify_waiters();
        }
    }

    /// Hears of a run until the guard is dropped.
    pub(crate) fn hear_of(&self, run: RunId) -> Hearing<'_, S> {
        let mut all = lock(&self.awaited);
        let awaited =
            all.entry(run).or_insert_with(|| Awaited { left: Arc::new(Notify::new()), by: 0 });
        awaited.by += 1;
        Hearing { local: self, run, left: awaited.left.clone() }
    }
}

/// Hears of one run.
pub(crate) struct Hearing<'l, S: TxStore> {
    local: &'l Local<S>,
    run: RunId,
    left: Arc<Notify>,
}

impl<S: TxStore> Hearing<'_, S> {
    pub(crate) fn left(&self) -> &Notify {
        &self.left
    }
}

impl<S: TxStore> Drop for Hearing<'_, S> {
    fn drop(&mut self) {
        let mut all = lock(&self.local.awaited);
        if let Some(awaited) = all.get_mut(&self.run) {
            awaited.by -= 1;
            if awaited.by == 0 {
                all.remove(&self.run);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
