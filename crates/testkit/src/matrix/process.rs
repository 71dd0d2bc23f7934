//! One process: a handle on the data that can die, a kernel, a worker, and a clock of its own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use surefoot_kernel_core::{EffectClass, EffectKey, Micros, StepKey, TxStore};
use surefoot_language::StepCx;
use surefoot_worker::WorkerError;

use super::Scenario;
use super::provider::{Did, Entry, Provider};
use crate::living::Living;
use crate::suite::StoreFactory;
use crate::{FaultPlan, FaultyStore, SeqIds, VirtualClock};

/// The application that everything in the matrix belongs to.
pub(super) const APP: &str = "matrix";

/// A process of the application, as its actions see it. Cheap to clone.
pub struct Process<F: StoreFactory>(Arc<Inner<F>>);

struct Inner<F: StoreFactory> {
    number: u32,
    store: FaultyStore<F::Store>,
    clock: VirtualClock,
    provider: Provider,
    writes: AtomicU64,
    /// Its clock stands still.
    sleeps: AtomicBool,
}

impl<F: StoreFactory> Clone for Process<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F: StoreFactory> fmt::Debug for Process<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("number", &self.0.number).finish_non_exhaustive()
    }
}

impl<F: StoreFactory> Process<F> {
    pub(super) fn new(number: u32, store: F::Store, provider: Provider) -> Self {
        Self(Arc::new(Inner {
            number,
            store: FaultyStore::new(store, FaultPlan::new()),
            clock: VirtualClock::default(),
            provider,
            writes: AtomicU64::new(0),
            sleeps: AtomicBool::new(false),
        }))
    }

    /// Its handle on the data: for actions with transactions of their own.
    #[must_use]
    pub fn store(&self) -> &FaultyStore<F::Store> {
        &self.0.store
    }

    /// The world outside.
    #[must_use]
    pub fn provider(&self) -> &Provider {
        &self.0.provider
    }

    /// Lets the process's own clock gain a span: an action takes its time.
    pub fn take(&self, span: Micros) {
        self.0.clock.advance(span);
    }

    /// Logs a call of a pure action. Those know neither run nor step: the scenario names the step in the config, that of a
    /// child behind the place of its run, `steps.0[1]/steps.2`.
    pub fn called_pure(&self, step: &str) {
        let (process, class, step) = (self.0.number, EffectClass::Pure, StepKey::from(step));
        let entry = Entry { process, class, run: None, step, key: None, did: Did::Called };
        self.0.provider.add(entry);
    }

    /// Logs a call of a transactional action, and gives the key of the row that this very call has to write: no two
    /// calls write the same one.
    pub fn called_transactional(&self, cx: &StepCx) -> String {
        let nth = self.0.writes.fetch_add(1, Ordering::SeqCst);
        let row = format!("{} {} {nth}", cx.step_key(), self.0.number);
        let class = EffectClass::Transactional;
        self.log(class, cx, None, Did::Called);
        self.log(class, cx, None, Did::Wrote(row.clone()));
        row
    }

    /// Logs a call of an idempotent action, which carries out the effect unless it was carried out under this key.
    pub fn called_idempotent(&self, cx: &StepCx, key: &EffectKey) {
        self.called(EffectClass::Idempotent, cx, key);
    }

    /// Logs that the fence let an idempotent action through, on a transaction of its own.
    pub fn passed_fence(&self, cx: &StepCx, key: &EffectKey) {
        let class = EffectClass::Idempotent;
        let generation = self.faults().held_generation().unwrap_or_default();
        self.log(class, cx, Some(key.clone()), Did::PassedFence(generation));
    }

    /// Logs a call of an ambiguous action. A second one under the same key is carried out a second time: nobody else
    /// stops it.
    pub fn called_ambiguous(&self, cx: &StepCx, key: &EffectKey) {
        let class = EffectClass::Ambiguous;
        self.log(class, cx, Some(key.clone()), Did::Called);
        self.log(class, cx, Some(key.clone()), Did::CarriedOut);
    }

    /// Logs a call of an ambiguous action that is not carried out.
    pub fn called_in_vain(&self, cx: &StepCx, key: &EffectKey) {
        self.log(EffectClass::Ambiguous, cx, Some(key.clone()), Did::Called);
    }

    /// Logs that an ambiguous action asks, and answers whether the effect was carried out.
    pub fn asked(&self, cx: &StepCx, key: &EffectKey) -> bool {
        self.log(EffectClass::Ambiguous, cx, Some(key.clone()), Did::Asked);
        self.0.provider.knows(key)
    }

    fn called(&self, class: EffectClass, cx: &StepCx, key: &EffectKey) {
        self.log(class, cx, Some(key.clone()), Did::Called);
        if !self.0.provider.knows(key) {
            self.log(class, cx, Some(key.clone()), Did::CarriedOut);
        }
    }

    fn log(&self, class: EffectClass, cx: &StepCx, key: Option<EffectKey>, did: Did) {
        let (process, run, step) = (self.0.number, Some(cx.run_id()), cx.step_key().clone());
        self.0.provider.add(Entry { process, class, run, step, key, did });
    }

    pub(super) fn faults(&self) -> &FaultPlan {
        self.0.store.plan()
    }

    pub(super) fn sleep(&self, sleeps: bool) {
        self.0.sleeps.store(sleeps, Ordering::SeqCst);
    }

    /// Time passes for everybody whose clock does not stand still.
    pub(super) fn pass(&self, span: Micros) {
        if !self.0.sleeps.load(Ordering::SeqCst) {
            self.0.clock.advance(span);
        }
    }

    /// Starts it: what it is until it dies.
    pub(super) fn start<S: Scenario<F>>(
        &self,
        scenario: &S,
        ids: &SeqIds,
    ) -> Result<Life<F>, WorkerError> {
        let (store, module) = (self.0.store.clone(), scenario.module(self));
        let living = Living::start(APP, store, &self.0.clock, ids, module)?;
        Ok(Life { process: self.clone(), living })
    }
}

/// A running process, and what the test knows of it.
pub(super) struct Life<F: StoreFactory> {
    pub(super) process: Process<F>,
    pub(super) living: Living<F::Store>,
}

/// What statements of a factory's store run on.
pub type TxOf<F> = <<F as StoreFactory>::Store as TxStore>::Tx;
