//! One worker session: from a start to its stop.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use surefoot_kernel_core::{Clock, Micros, RunId, SessionId};
use tokio::sync::Notify;

use super::hold::Hold;
use super::life::Life;
use super::pace::{Jitter, minus, part, plus};

/// How far a stop has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Claims and works.
    Working,
    /// Claims nothing more; runs go on to their end.
    Draining,
    /// Runs are handed over at their next step boundary; hooks have their token.
    HandingOver,
    /// Hooks are dropped; leases are left to lapse.
    Abandoning,
    /// Nothing runs any more.
    Over,
}

/// The signs of life of the loops of a session.
pub(crate) struct Lives {
    pub(crate) claims: Life,
    pub(crate) leases: Life,
    pub(crate) recovery: Life,
    pub(crate) schedules: Life,
    pub(crate) sessions: Life,
    pub(crate) wakes: Life,
}

/// When the keeper looks at leases and hooks again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) at: Micros,
    /// So long before a lease ends it must look at it.
    pub(crate) margin: Micros,
}

/// What the loops and drivers of one session share.
pub(crate) struct Shift {
    pub(crate) session: SessionId,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) jitter: Jitter,
    pub(crate) lives: Lives,
    /// Something may be ready to claim.
    pub(crate) claim: Notify,
    /// Recovery has something to do.
    pub(crate) recover: Notify,
    /// The keeper is asked to renew now.
    pub(crate) renew: Notify,
    /// Something is due before the keeper would look again.
    pub(crate) is_due: Notify,
    looks: Mutex<Option<Look>>,
    /// The keeper has ended a pass, with or without an answer.
    pub(crate) renewed: Notify,
    /// Whether the last claim came back full: then there is probably more.
    pub(crate) is_full: AtomicBool,
    phase: Mutex<Phase>,
    moved_on: Notify,
    /// How long runs may go on after a stop was asked for.
    grace: Mutex<Option<Duration>>,
    nonce: AtomicU64,
    /// The next claim was asked for before, and nobody knows what came of it.
    is_claim_lost: AtomicBool,
    /// When the scan last heard what is due, by monotonic time.
    scanned_at: AtomicI64,
    /// When old payloads were last looked for, by monotonic time.
    expired_at: Mutex<Option<Micros>>,
    holds: Mutex<Vec<Arc<Hold>>>,
    released: Notify,
}

impl Shift {
    pub(crate) fn new(session: SessionId, clock: Arc<dyn Clock>) -> Self {
        let life = |name| Life::new(name, clock.clone());
        Self {
            session,
            jitter: Jitter::of(session),
            lives: Lives {
                claims: life("claims"),
                leases: life("leases"),
                recovery: life("recovery"),
                schedules: life("schedules"),
                sessions: life("sessions"),
                wakes: life("wakes"),
            },
            claim: Notify::new(),
            recover: Notify::new(),
            renew: Notify::new(),
            is_due: Notify::new(),
            looks: Mutex::default(),
            renewed: Notify::new(),
            is_full: AtomicBool::new(true),
            phase: Mutex::new(Phase::Working),
            moved_on: Notify::new(),
            grace: Mutex::new(None),
            nonce: AtomicU64::new(1),
            is_claim_lost: AtomicBool::new(false),
            scanned_at: AtomicI64::new(clock.monotonic().get()),
            expired_at: Mutex::default(),
            holds: Mutex::default(),
            released: Notify::new(),
            clock,
        }
    }

    /// The scan has heard what is due.
    pub(crate) fn has_scanned(&self) {
        self.scanned_at.store(self.now().get(), Ordering::Relaxed);
    }

    /// Whether a scan of this rhythm has not been heard of for longer than it should be: it fails, or has much to do.
    pub(crate) fn scan_is_late(&self, scan: Micros) -> bool {
        let last = Micros::new(self.scanned_at.load(Ordering::Relaxed));
        minus(self.now(), last) > plus(scan, part(scan, 2))
    }

    /// Whether old payloads have not been looked for within so long.
    pub(crate) fn expiry_is_due(&self, every: Micros) -> bool {
        let last = *self.expired_at.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_none_or(|last| minus(self.now(), last) >= every)
    }

    pub(crate) fn has_expired(&self) {
        *self.expired_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.now());
    }

    pub(crate) fn now(&self) -> Micros {
        self.clock.monotonic()
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves on; a stop is never taken back.
    pub(crate) fn advance_to(&self, phase: Phase) {
        {
            let mut current = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
            *current = phase.max(*current);
        }
        self.moved_on.notify_waiters();
        if phase >= Phase::HandingOver {
            self.holds().iter().for_each(|hold| hold.stop());
        }
    }

    /// Asks for a stop; `None` lets runs go on to their end.
    pub(crate) fn ask_to_stop(&self, grace: Option<Duration>) {
        *self.grace.lock().unwrap_or_else(PoisonError::into_inner) = grace;
        self.advance_to(Phase::Draining);
    }

    pub(crate) fn grace(&self) -> Option<Duration> {
        *self.grace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes once a stop has come so far. Cancel safe.
    pub(crate) async fn reached(&self, phase: Phase) {
        until(&self.moved_on, || self.phase() >= phase).await;
    }

    /// Names the next claim. Only an answered claim uses its name up.
    pub(crate) fn nonce(&self) -> u64 {
        self.nonce.load(Ordering::Relaxed)
    }

    pub(crate) fn claim_answered(&self) {
        self.nonce.fetch_add(1, Ordering::Relaxed);
        self.is_claim_lost.store(false, Ordering::Relaxed);
    }

    pub(crate) fn claim_lost(&self) {
        self.is_claim_lost.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_claim_lost(&self) -> bool {
        self.is_claim_lost.load(Ordering::Relaxed)
    }

    /// Holds a run that was claimed, or started eagerly.
    pub(crate) fn hold(
        self: &Arc<Self>,
        run: RunId,
        generation: u64,
        lease: (Micros, Micros),
    ) -> HoldGuard {
        let hold = Arc::new(Hold::new(run, generation, lease, self.clock.clone()));
        if self.phase() >= Phase::HandingOver {
            hold.stop();
        }
        let mut holds = self.lock_holds();
        // The run is claimed anew, so whoever works on it here has lost it, and may not know yet.
        for older in holds.iter().filter(|older| older.run() == run) {
            older.lose(older.generation());
        }
        holds.push(hold.clone());
        drop(holds);
        self.lease_ends(lease.1);
        HoldGuard { shift: self.clone(), hold }
    }

    /// The keeper begins to look, or says when it looks again.
    pub(crate) fn looks(&self, again: Option<Look>) {
        *self.looks.lock().unwrap_or_else(PoisonError::into_inner) = again;
    }

    /// A lease ends then. To be called once the hold says so.
    pub(crate) fn lease_ends(&self, ends: Micros) {
        self.wake_keeper(|look| minus(ends, look.margin) < look.at);
    }

    /// The time of a hook is up then. To be called once the hold says so.
    pub(crate) fn hook_ends(&self, at: Micros) {
        self.wake_keeper(|look| at < look.at);
    }

    /// What is due after the keeper's next look needs no word: with many short hooks it would look all the time.
    fn wake_keeper(&self, is_before: impl Fn(Look) -> bool) {
        let looks = *self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.is_none_or(is_before) {
            self.is_due.notify_one();
        }
    }

    pub(crate) fn holds(&self) -> Vec<Arc<Hold>> {
        self.lock_holds().clone()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.lock_holds().is_empty()
    }

    pub(crate) fn holds_run(&self, run: RunId) -> bool {
        self.lock_holds().iter().any(|hold| hold.run() == run)
    }

    /// Runs whose hook does not return though its time is over.
    pub(crate) fn stuck(&self) -> usize {
        self.holds().iter().filter(|hold| hold.is_stuck()).count()
    }

    /// Cancel was requested in this process: no need to wait for the scan.
    pub(crate) fn cancel(&self, run: RunId) {
        self.holds().iter().filter(|hold| hold.run() == run).for_each(|hold| hold.cancel());
    }

    /// Completes once no run is held. Cancel safe.
    pub(crate) async fn idle(&self) {
        until(&self.released, || self.is_idle()).await;
    }

    /// Completes once no earlier driver of this process works on the run. Cancel safe. Of two that hold it only one
    /// may wait for the other.
    pub(crate) async fn alone(&self, mine: &Arc<Hold>) {
        let is_alone = || {
            let holds = self.lock_holds();
            let mut earlier = holds.iter().take_while(|other| !Arc::ptr_eq(other, mine));
            earlier.all(|other| other.run() != mine.run())
        };
        until(&self.released, is_alone).await;
    }

    fn lock_holds(&self) -> MutexGuard<'_, Vec<Arc<Hold>>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Completes once it is so; whoever may make it so notifies all waiters. They go on in the order in which they came,
/// which those of a `watch` channel do not: under a clock that was given, all happens the same way each time.
async fn until(changed: &Notify, is_so: impl Fn() -> bool) {
    loop {
        // What comes after this line is not missed.
        let change = changed.notified();
        if is_so() {
            return;
        }
        change.await;
    }
}

/// Lets go of a run, however its work ends.
pub(crate) struct HoldGuard {
    shift: Arc<Shift>,
    hold: Arc<Hold>,
}

impl HoldGuard {
    pub(crate) const fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.shift.lock_holds().retain(|held| !Arc::ptr_eq(held, &self.hold));
        self.shift.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemClock;

    /// A simulation counts on it.
    #[tokio::test]
    async fn those_who_wait_go_on_in_the_order_in_which_they_came() {
        let session = SessionId::from_bytes([1; 16]);
        let shift = Arc::new(Shift::new(session, Arc::new(SystemClock::default())));
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = tokio::task::JoinSet::new();
        for nth in 0..30 {
            let (shift, order) = (shift.clone(), order.clone());
            waiting.spawn(async move {
                shift.reached(Phase::Draining).await;
                order.lock().unwrap().push(nth);
            });
        }
        tokio::task::yield_now().await;
        shift.advance_to(Phase::Draining);
        waiting.join_all().await;
        assert_eq!(*order.lock().unwrap(), (0..30).collect::<Vec<i32>>());
    }

    /// Of two drivers of one run the later one waits, and never both for each other.
    #[tokio::test]
    async fn the_earlier_of_two_drivers_of_a_run_waits_for_nobody() {
        let session = SessionId::from_bytes([1; 16]);
        let shift = Arc::new(Shift::new(session, Arc::new(SystemClock::default())));
        let run = RunId::from_bytes([2; 16]);
        let lease = (Micros::ZERO, Micros::from_secs(1));
        let (first, second) = (shift.hold(run, 1, lease), shift.hold(run, 2, lease));
        shift.alone(first.hold()).await;
        let waiting = shift.alone(second.hold());
        tokio::pin!(waiting);
        let is_alone = tokio::select! {
            biased;
            () = &mut waiting => true,
            () = std::future::ready(()) => false,
        };
        assert!(!is_alone);
        drop(first);
        waiting.await;
    }
}
