//! Claims runs for free slots.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use surefoot_kernel_core::{
    ClaimRequest, Measure, Micros, Mode, RunStore, StoreError, Stored, TxStore,
};
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;

use super::pace::{minus, plus};
use super::shift::{Phase, Shift};
use super::{Engine, Launched, Taken};
use crate::engine::life::with_causes;
use crate::spans;

/// The store is asked which footprints its runs need at most this often for wake-ups; recovery asks with each scan.
const LIST_EVERY: Micros = Micros::from_millis(250);

/// A claim whose answer was lost: asked again under the same name, with the slots that it may bring runs for.
pub(super) struct Unanswered {
    slots: OwnedSemaphorePermit,
    footprints: Vec<String>,
}

/// What a claim brought.
pub(super) struct Claimed<S: TxStore> {
    pub(super) launched: Vec<Launched<S>>,
    /// As many as there were slots: there may be more.
    pub(super) is_full: bool,
}

impl<S: TxStore> Engine<S> {
    /// Claims whenever somebody wakes it, as the scan does where something is due, until a stop is asked for. Once in a
    /// while it looks up by itself: a claim may have failed, or the scan.
    pub(super) async fn claim_until_stopped(self: &Arc<Self>, shift: &Arc<Shift>) {
        let mut unanswered = None;
        let (mut is_woken, mut has_failed) = (true, false);
        loop {
            if is_woken || has_failed || shift.scan_is_late(self.settings.scan) {
                let claimed = self.claim_all(shift, &mut unanswered, is_woken).await;
                has_failed = claimed.is_err();
                // The slots rest until the next wake-up, or the next look.
                if let Err(error) = claimed {
                    shift.lives.claims.failed(&with_causes(&error));
                }
            }
            if !has_failed {
                shift.lives.claims.well();
            }
            is_woken = tokio::select! {
                biased;
                () = shift.reached(Phase::Draining) => return,
                () = shift.claim.notified() => true,
                () = tokio::time::sleep(shift.jitter.shorten(self.settings.scan)) => false,
            };
            if shift.phase() >= Phase::Draining {
                return;
            }
        }
    }

    /// Claims as long as claims come back full and there are free slots. Whoever is woken may be so by a run of a
    /// version that was not wanted before.
    async fn claim_all(
        self: &Arc<Self>,
        shift: &Arc<Shift>,
        unanswered: &mut Option<Unanswered>,
        is_woken: bool,
    ) -> Result<(), StoreError> {
        if is_woken && self.footprints.claimable().is_empty() {
            self.list_footprints(shift).await?;
        }
        loop {
            let Some(claimed) = self.claim(shift, usize::MAX, unanswered).await? else {
                // No slot is free: whoever frees one wakes the claimer.
                return Ok(());
            };
            let is_full = claimed.is_full;
            claimed.launched.into_iter().for_each(Launched::spawn);
            if is_full {
                continue;
            }
            let is_old = self.footprints.is_older_than(LIST_EVERY, shift.now());
            if !(is_woken && is_old && self.list_footprints(shift).await?) {
                return Ok(());
            }
        }
    }

    /// Asks what runs need. Says whether something is claimable that was not before.
    pub(super) async fn list_footprints(&self, shift: &Shift) -> Result<bool, StoreError> {
        let listed = self.kernel.store().footprint_list(self.kernel.app()).await?;
        Ok(self.footprints.list(listed, shift.now()))
    }

    /// Claims once, for at most so many free slots; `None` if there is none.
    pub(super) async fn claim(
        self: &Arc<Self>,
        shift: &Arc<Shift>,
        most: usize,
        unanswered: &mut Option<Unanswered>,
    ) -> Result<Option<Claimed<S>>, StoreError> {
        let Unanswered { slots, footprints } = match unanswered.take() {
            Some(before) => before,
            None => {
                let Some(slots) = self.take_slots(most).or_else(|| {
                    shift.is_full.store(true, Ordering::SeqCst);
                    // A slot that was freed before that was seen woke nobody.
                    self.take_slots(most)
                }) else {
                    return Ok(None);
                };
                Unanswered { slots, footprints: self.footprints.claimable() }
            }
        };
        if footprints.is_empty() {
            shift.is_full.store(false, Ordering::Relaxed);
            return Ok(Some(Claimed { launched: Vec::new(), is_full: false }));
        }
        let limit = u32::try_from(slots.num_permits()).unwrap_or(u32::MAX);
        let asked = shift.now();
        let request = ClaimRequest {
            app: self.kernel.app().clone(),
            mode: Mode::Execute,
            footprints: footprints.clone(),
            tree: self.settings.tree,
            limit,
            session: shift.session,
            nonce: shift.nonce(),
            lease: self.settings.lease,
            plans: self.known_plans(),
        };
        let claiming = self.kernel.store().run_claim(request).instrument(spans::claims(limit));
        let runs = match claiming.await {
            Ok(runs) => runs,
            Err(error) => {
                shift.claim_lost();
                *unanswered = Some(Unanswered { slots, footprints });
                return Err(error);
            }
        };
        let took = minus(shift.now(), asked);
        self.measure(Measure::Claimed { runs: runs.len(), took });
        let (runs, lease) = if shift.is_claim_lost() && !runs.is_empty() {
            match left_of_leases(self.kernel.store(), shift, runs, self.settings.lease).await {
                Ok(found) => found,
                Err(error) => {
                    *unanswered = Some(Unanswered { slots, footprints });
                    return Err(error);
                }
            }
        } else {
            (runs, (asked, plus(asked, self.settings.lease)))
        };
        shift.claim_answered();
        let is_full = runs.len() >= slots.num_permits();
        shift.is_full.store(is_full, Ordering::Relaxed);
        let launched = self.launch_claimed(shift, (runs, asked), slots, lease);
        Ok(Some(Claimed { launched, is_full }))
    }

    fn launch_claimed(
        self: &Arc<Self>,
        shift: &Arc<Shift>,
        (runs, asked): (Vec<Stored>, Micros),
        slots: OwnedSemaphorePermit,
        lease: (Micros, Micros),
    ) -> Vec<Launched<S>> {
        if !runs.is_empty() {
            tracing::debug!(runs = runs.len(), "claimed");
        }
        let runs = runs.into_iter().map(|stored| Taken::new(stored, asked)).collect();
        self.launch(shift, runs, slots, lease)
    }
}

/// Runs of a claim whose answer was lost may have been this worker's for a while: what is left of their leases is for the
/// store to say. Where nothing is left, the next claim brings them again.
pub(crate) async fn left_of_leases(
    store: &dyn RunStore,
    shift: &Shift,
    runs: Vec<Stored>,
    lease: Micros,
) -> Result<(Vec<Stored>, (Micros, Micros)), StoreError> {
    let asked = shift.now();
    let now = store.store_now().await?;
    let left = |it: &Stored| it.run.lease().map_or(Micros::ZERO, |lease| lease.until.since(now));
    let runs: Vec<Stored> = runs.into_iter().filter(|it| left(it) > Micros::ZERO).collect();
    let shortest = runs.iter().map(left).min().unwrap_or(Micros::ZERO);
    Ok((runs, (asked, plus(asked, shortest.min(lease)))))
}
