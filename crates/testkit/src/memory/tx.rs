//! Transactions, and fences on them.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use surefoot_kernel_core::{BoxFuture, Fence, FenceError, RunId, RunState};
use tokio::sync::Notify;

use super::state::State;

/// What runs inside a transaction works on: a staged copy of the store, which replaces the original at commit.
#[derive(Debug)]
pub struct MemoryTx {
    pub(super) state: State,
    held: Vec<Held>,
}

/// An open transaction. No other write begins while it is open; dropping it rolls back.
#[derive(Debug)]
pub struct OpenMemoryTx {
    pub(super) tx: MemoryTx,
    pub(super) _open: OpenWriter,
}

/// An application's error by which it says that its transaction lost against another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the transaction was refused in favour of another one")]
pub struct MemoryConflict;

impl MemoryTx {
    pub(super) fn new(state: State) -> Self {
        Self { state, held: Vec::new() }
    }

    /// A small table of the application's own, inside this transaction.
    pub fn table(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.state.table
    }
}

impl Deref for OpenMemoryTx {
    type Target = MemoryTx;

    fn deref(&self) -> &MemoryTx {
        &self.tx
    }
}

impl DerefMut for OpenMemoryTx {
    fn deref_mut(&mut self) -> &mut MemoryTx {
        &mut self.tx
    }
}

/// Who writes: a transaction for as long as it is open, anybody else for an instant. It is never handed over to a task
/// that waits: one that is not polled, since its thread is blocked, would keep everybody else from writing.
#[derive(Debug, Clone, Default)]
pub(super) struct Writer {
    is_open: Arc<Mutex<bool>>,
    closed: Arc<Notify>,
}

impl Writer {
    /// Waits until no transaction is open; none begins while the guard is there.
    pub(super) async fn turn(&self) -> MutexGuard<'_, bool> {
        loop {
            // A transaction that closes after this line is not missed.
            let closed = self.closed.notified();
            {
                let is_open = self.lock();
                if !*is_open {
                    return is_open;
                }
            }
            closed.await;
        }
    }

    /// Waits until no other transaction is open.
    pub(super) async fn open(&self) -> OpenWriter {
        *self.turn().await = true;
        OpenWriter(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of an open transaction.
#[derive(Debug)]
pub(super) struct OpenWriter(Writer);

impl Drop for OpenWriter {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.closed.notify_waiters();
    }
}

/// Which runs are held by fences, with the number of fences on each.
#[derive(Debug, Clone, Default)]
pub(super) struct Fences(Arc<Mutex<BTreeMap<RunId, usize>>>);

impl Fences {
    pub(super) fn holds(&self, run: RunId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&run)
    }

    fn hold(&self, run: RunId) -> Held {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(run).or_default() += 1;
        Held { fences: self.clone(), run }
    }
}

/// One held fence; let go when its transaction ends.
#[derive(Debug)]
struct Held {
    fences: Fences,
    run: RunId,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.fences.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.run) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                held.remove(&self.run);
            }
        }
    }
}

pub(super) struct MemoryFence {
    pub(super) run: RunId,
    pub(super) generation: u64,
    pub(super) fences: Fences,
}

impl Fence<MemoryTx> for MemoryFence {
    fn hold<'a>(&'a self, tx: &'a mut MemoryTx) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(async move {
            let run = tx.state.runs.get(&self.run).map(|entry| &entry.run);
            let run = run.ok_or(FenceError::LeaseLost)?;
            if run.generation != self.generation || run.state() != RunState::Running {
                return Err(FenceError::LeaseLost);
            }
            if run.cancel.is_some() {
                return Err(FenceError::Canceled);
            }
            tx.held.push(self.fences.hold(self.run));
            Ok(())
        })
    }
}
