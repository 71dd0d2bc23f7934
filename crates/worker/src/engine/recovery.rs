//! The scan: wakes what is due, creates the runs of deferred events, finalises what nobody will.

use std::sync::Arc;

use surefoot_kernel_core::{
    Dispatched, Measure, Micros, Mode, Recovered, Scan, StoreError, TxStore, WorkDue,
};
use tracing::Instrument as _;

use super::Engine;
use super::shift::{Phase, Shift};
use crate::engine::life::with_causes;
use crate::spans;

/// Runs of each kind that one question to the store may move.
const SCAN_LIMIT: u32 = 1_000;
/// Events of one question.
const DISPATCH_LIMIT: u32 = 100;
/// Events that one question may empty.
const EXPIRE_LIMIT: u32 = 200;
/// How often old payloads are looked for. How old they are is judged by the store's clock.
const EXPIRE_EVERY: Micros = Micros::from_secs(3_600);

/// What a pass did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recovery {
    pub(super) woken: usize,
    pub(super) finalised: usize,
    pub(super) dispatched: usize,
    more: bool,
}

impl Recovery {
    const fn did_something(self) -> bool {
        self.woken + self.finalised + self.dispatched > 0
    }
}

impl<S: TxStore> Engine<S> {
    /// Scans whenever somebody wakes it, and every `scan` anyway, until a stop is asked for.
    pub(super) async fn recover_until_stopped(self: &Arc<Self>, shift: &Arc<Shift>) {
        // Workers that start together do not scan together.
        let mut wait = shift.jitter.within(self.settings.scan);
        loop {
            tokio::select! {
                biased;
                () = shift.reached(Phase::Draining) => return,
                () = shift.recover.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
            match self.recover_all(shift).await {
                Ok(_) => shift.lives.recovery.well(),
                Err(error) => shift.lives.recovery.failed(&with_causes(&error)),
            }
            wait = shift.jitter.shorten(self.settings.scan);
        }
    }

    /// One pass: as long as there is more, and it gets somewhere.
    pub(super) async fn recover_all(&self, shift: &Shift) -> Result<Recovery, StoreError> {
        let mut all = Recovery::default();
        loop {
            let pass = self.recover_once(shift).await?;
            all.woken += pass.woken;
            all.finalised += pass.finalised;
            all.dispatched += pass.dispatched;
            if pass.woken + pass.dispatched > 0 {
                shift.claim.notify_one();
            }
            if !(pass.more && pass.did_something()) || shift.phase() >= Phase::Draining {
                break;
            }
        }
        // A dispatched event may have brought runs of a version that was not wanted before.
        if all.did_something() && self.list_footprints(shift).await? {
            shift.claim.notify_one();
        }
        self.expire_all(shift).await?;
        Ok(all)
    }

    /// Empties the payloads of old events: at the first pass of a session, and every hour from then on.
    async fn expire_all(&self, shift: &Shift) -> Result<(), StoreError> {
        if !shift.expiry_is_due(EXPIRE_EVERY) {
            return Ok(());
        }
        let (store, app) = (self.kernel.store(), self.kernel.app());
        loop {
            let pass = store.event_expire(app, EXPIRE_LIMIT).await?;
            if !pass.more || pass.emptied == 0 || shift.phase() >= Phase::Draining {
                break;
            }
        }
        shift.has_expired();
        Ok(())
    }

    /// What is due, by one question; the claimer is woken if a run of it is.
    async fn look(&self, shift: &Shift) -> Result<WorkDue, StoreError> {
        let due = self.kernel.store().work_due(self.kernel.app(), Mode::Execute).await?;
        self.footprints.list(due.footprints.clone(), shift.now());
        if self.footprints.offers_any(&due.claimable) {
            shift.claim.notify_one();
        }
        shift.has_scanned();
        Ok(due)
    }

    async fn recover_once(&self, shift: &Shift) -> Result<Recovery, StoreError> {
        let (store, app) = (self.kernel.store(), self.kernel.app());
        let due = self.look(shift).await?;
        // One may fail without the other: both are tried.
        let recovered = if due.recover {
            store.run_recover(Scan { app: app.clone(), limit: SCAN_LIMIT }).await
        } else {
            Ok(Recovered::default())
        };
        let dispatched = if due.dispatch {
            let dispatching = store.event_dispatch(app, DISPATCH_LIMIT);
            dispatching.instrument(spans::dispatches()).await
        } else {
            Ok(Dispatched::default())
        };
        let recovered = recovered?;
        let dispatched = dispatched?;
        spans::dispatched(&dispatched);
        for run in &recovered.finalised {
            self.kernel.local().run_moved(*run);
        }
        let (woken, finalised) = (recovered.woken.len(), recovered.finalised.len());
        let dispatched_now = dispatched.dispatched.len();
        let pass = Recovery {
            woken,
            finalised,
            dispatched: dispatched_now,
            more: recovered.more || dispatched.more,
        };
        if pass.did_something() {
            self.measure(Measure::Recovered { woken, finalised, dispatched: dispatched_now });
        }
        Ok(pass)
    }
}
