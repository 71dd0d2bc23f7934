//! A started worker: its loops, from the start to the end of the stop.

use std::future::Future;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use surefoot_kernel_core::{Micros, Mode, SessionReport, StoreError, TxStore};
use tokio::task::{JoinHandle, JoinSet};

use super::hold::HOOK_GRACE;
use super::keeper::{KeeperStore, Rhythm, keep};
use super::panics::caught;
use super::shift::{Phase, Shift};
use super::{Engine, pace};
use crate::WorkerError;
use crate::engine::life::with_causes;

/// A session says that it lives this often; it counts as gone after a minute.
pub(crate) const REPORT_EVERY: Micros = Micros::from_secs(10);
/// How long a last word to the store, or to a loop that does not end, may take.
pub(crate) const LAST_WORD: Duration = Duration::from_secs(1);

/// Starts the loops of a new session. The handle ends once the session is over.
pub(crate) fn start<S: TxStore>(
    engine: &Arc<Engine<S>>,
) -> Result<(Arc<Shift>, JoinHandle<()>), WorkerError> {
    let mut started = engine.started.lock().unwrap_or_else(PoisonError::into_inner);
    if started.upgrade().is_some_and(|shift| shift.phase() < Phase::Over) {
        return Err(WorkerError::AlreadyStarted);
    }
    let shift = engine.new_shift();
    let (store, is_system_clock) = (engine.clone(), engine.kernel.has_system_clock());
    let keeper = keep_leases(store, &shift, engine.rhythm(), is_system_clock);
    let keeper = keeper.map_err(WorkerError::Thread)?;
    *started = Arc::downgrade(&shift);
    drop(started);
    let main = tokio::spawn(work(engine.clone(), shift.clone(), keeper));
    Ok((shift, main))
}

/// Under a clock of the system, leases are kept on a thread of their own. A clock that was given moves with the
/// caller's runtime, and so does the keeper.
pub(crate) fn keep_leases(
    store: Arc<dyn KeeperStore>,
    shift: &Arc<Shift>,
    rhythm: Rhythm,
    is_system_clock: bool,
) -> io::Result<Option<JoinHandle<()>>> {
    let keeping = keep(store, shift.clone(), rhythm);
    if !is_system_clock {
        return Ok(Some(tokio::spawn(keeping)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thread = std::thread::Builder::new().name("surefoot-leases".to_owned());
    thread.spawn(move || runtime.block_on(keeping))?;
    Ok(None)
}

async fn work<S: TxStore>(
    engine: Arc<Engine<S>>,
    shift: Arc<Shift>,
    keeper: Option<JoinHandle<()>>,
) {
    let mut loops = JoinSet::new();
    loops.spawn(looping(&engine, &shift, |engine, shift| async move {
        shift.lives.claims.keep(|| engine.claim_until_stopped(&shift)).await;
    }));
    loops.spawn(looping(&engine, &shift, |engine, shift| async move {
        shift.lives.recovery.keep(|| engine.recover_until_stopped(&shift)).await;
    }));
    loops.spawn(looping(&engine, &shift, |engine, shift| async move {
        shift.lives.schedules.keep(|| engine.fire_until_stopped(&shift)).await;
    }));
    loops.spawn(looping(&engine, &shift, |engine, shift| async move {
        shift.lives.sessions.keep(|| engine.report_until_over(&shift)).await;
    }));
    loops.spawn(looping(&engine, &shift, |engine, shift| async move {
        shift.lives.wakes.keep(|| engine.carry_wakes(&shift)).await;
    }));
    shift.reached(Phase::Draining).await;
    end_runs(&shift).await;
    shift.advance_to(Phase::Over);
    let all_ended = async { while loops.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_WORD, all_ended).await;
    if let Some(keeper) = keeper {
        keeper.abort();
    }
    let _ = tokio::time::timeout(LAST_WORD, caught(engine.report(&shift, true))).await;
}

fn looping<S: TxStore, F: Future<Output = ()>>(
    engine: &Arc<Engine<S>>,
    shift: &Arc<Shift>,
    body: impl FnOnce(Arc<Engine<S>>, Arc<Shift>) -> F,
) -> F {
    body(engine.clone(), shift.clone())
}

/// Runs go on to their end, then to their next step boundary, then they are left.
pub(crate) async fn end_runs(shift: &Shift) {
    let Some(grace) = shift.grace() else {
        // Nobody waits for this stop, so nobody gave it a time. A later `stop` cannot come: its handle is gone.
        shift.idle().await;
        return;
    };
    if tokio::time::timeout(grace, shift.idle()).await.is_ok() {
        return;
    }
    shift.advance_to(Phase::HandingOver);
    let second = grace.max(HOOK_GRACE.into());
    if tokio::time::timeout(second, shift.idle()).await.is_ok() {
        return;
    }
    shift.advance_to(Phase::Abandoning);
    // A hook that blocks its thread cannot be dropped; the process may end without it.
    let _ = tokio::time::timeout(LAST_WORD, shift.idle()).await;
}

impl<S: TxStore> Engine<S> {
    pub(super) fn new_shift(&self) -> Arc<Shift> {
        Arc::new(Shift::new(self.kernel.ids().session(), self.kernel.clock().clone()))
    }

    async fn report_until_over(self: &Arc<Self>, shift: &Arc<Shift>) {
        loop {
            match self.report(shift, false).await {
                Ok(()) => shift.lives.sessions.well(),
                Err(error) => shift.lives.sessions.failed(&with_causes(&error)),
            }
            tokio::select! {
                biased;
                () = shift.reached(Phase::Over) => return,
                () = tokio::time::sleep(shift.jitter.shorten(REPORT_EVERY)) => {}
            }
        }
    }

    pub(super) async fn report(&self, shift: &Shift, ended: bool) -> Result<(), StoreError> {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let report = SessionReport {
            session: shift.session,
            app: self.kernel.app().clone(),
            name: self.settings.name.clone(),
            mode: Mode::Execute,
            offers: self.footprints.offers().to_vec(),
            tree: self.settings.tree,
            slots: count(self.settings.slots),
            busy: count(shift.holds().len()),
            stuck: count(shift.stuck()),
            ended,
        };
        self.kernel.store().session_report(report).await
    }

    /// Carries wake-ups from other processes to this one, and from this one to them.
    async fn carry_wakes(self: &Arc<Self>, shift: &Arc<Shift>) {
        let Some(bus) = self.settings.bus.clone() else { return };
        let app = self.kernel.app().as_str();
        let hear = async {
            loop {
                let asked = shift.now();
                bus.heard(app).await;
                shift.lives.wakes.well();
                shift.claim.notify_one();
                shift.recover.notify_one();
                // A bus that is down may answer at once, for ever.
                if pace::minus(shift.now(), asked) < Micros::from_millis(1) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        };
        let tell = async {
            loop {
                self.announce.notified().await;
                // Wake-ups meanwhile become one more announcement.
                let _ = tokio::time::timeout(Duration::from_secs(5), bus.announce(app)).await;
            }
        };
        tokio::select! {
            biased;
            () = shift.reached(Phase::Draining) => {}
            () = async { tokio::join!(hear, tell); } => {}
        }
    }
}
