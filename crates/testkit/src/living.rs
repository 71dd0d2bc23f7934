//! What the matrix and the bench share: a process that can die, and what a run that rests waits for.

use surefoot_kernel_core::{Dependency, Micros, Phase, Run, Timestamp, TxStore};
use surefoot_language::{Module, RunsOn};
use surefoot_worker::{Kernel, Worker, WorkerError};

use crate::{FaultyStore, SeqIds, VirtualClock};

/// The lease of every worker of the kit's own processes.
pub(crate) const LEASE: Micros = Micros::from_secs(30);

/// A running process: a handle on the data, a kernel, a worker. Dropping it is its death.
pub(crate) struct Living<S: TxStore> {
    pub(crate) kernel: Kernel<FaultyStore<S>>,
    pub(crate) worker: Worker,
}

impl<S: TxStore> Living<S> {
    pub(crate) fn start<B: RunsOn<S::Tx>>(
        app: &str,
        store: FaultyStore<S>,
        clock: &VirtualClock,
        ids: &SeqIds,
        module: Module<B>,
    ) -> Result<Self, WorkerError> {
        let kernel = Kernel::builder(app, store).clock(clock.clone()).ids(ids.clone()).build();
        let worker = kernel.worker(module).lease(LEASE.into()).build()?;
        Ok(Self { kernel, worker })
    }
}

impl<S: TxStore> Drop for Living<S> {
    fn drop(&mut self) {
        self.kernel.store().plan().kill();
    }
}

/// What a run that no worker drives waits for.
pub(crate) enum Awaits<'r> {
    /// Nothing: it has ended.
    Nothing,
    /// A person.
    Person,
    /// A signal, its children, or a deadline.
    Signal { on: Option<&'r Dependency>, deadline: Option<Timestamp> },
    /// A worker, from then on.
    Worker(Option<Timestamp>),
}

impl<'r> Awaits<'r> {
    pub(crate) fn of(run: &'r Run) -> Self {
        match &run.phase {
            Phase::Succeeded { .. } | Phase::Failed { .. } | Phase::Canceled { .. } => {
                Self::Nothing
            }
            Phase::NeedsAttention(_) => Self::Person,
            Phase::Waiting(wait) => Self::Signal { on: wait.on.as_ref(), deadline: wait.deadline },
            Phase::Queued { .. } | Phase::Running { .. } => Self::Worker(run.claimable_at()),
        }
    }
}

/// A little more than what is missing until then; a second, if there is no such time.
pub(crate) fn until(at: Option<Timestamp>, now: Timestamp) -> Micros {
    let missing = at.map_or(Micros::from_secs(1), |at| at.since(now));
    sum(missing.max(Micros::ZERO), Micros::from_millis(1))
}

/// The sum of two spans.
pub(crate) const fn sum(a: Micros, b: Micros) -> Micros {
    Micros::new(a.get().saturating_add(b.get()))
}
