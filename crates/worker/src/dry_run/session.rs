//! A started worker of dry runs: its loops, from the start to the end of the stop.

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use surefoot_kernel_core::{Mode, Scan, SessionReport, StoreError};
use tokio::task::{JoinHandle, JoinSet};

use super::drive;
use super::worker::{Claimed, Inner, RHYTHM, SCAN, SLOTS};
use crate::engine::keeper::KeeperStore;
use crate::engine::life::with_causes;
use crate::engine::panics::caught;
use crate::engine::session::{LAST_WORD, REPORT_EVERY, end_runs, keep_leases};
use crate::engine::{LoopHealth, Phase, Shift};
use crate::worker::Works;
use crate::{Running, WorkerError};

/// How many rows one pass of recovery looks at.
const RECOVERED_AT_ONCE: u32 = 100;

/// Starts the loops of a new session.
pub(super) fn start(inner: &Arc<Inner>) -> Result<Running, WorkerError> {
    let mut started = inner.started.lock().unwrap_or_else(PoisonError::into_inner);
    if started.upgrade().is_some_and(|shift| shift.phase() < Phase::Over) {
        return Err(WorkerError::AlreadyStarted);
    }
    let shift = inner.new_shift();
    let store: Arc<dyn KeeperStore> = inner.clone();
    let keeper = keep_leases(store, &shift, RHYTHM, inner.is_system_clock);
    let keeper = keeper.map_err(WorkerError::Thread)?;
    *started = Arc::downgrade(&shift);
    drop(started);
    let main = tokio::spawn(work(inner.clone(), shift.clone(), keeper));
    Ok(Running::new(inner.clone(), shift, main))
}

async fn work(inner: Arc<Inner>, shift: Arc<Shift>, keeper: Option<JoinHandle<()>>) {
    let mut loops = JoinSet::new();
    let (it, of) = (inner.clone(), shift.clone());
    loops.spawn(async move { of.lives.claims.keep(|| it.claim_until_stopped(&of)).await });
    let (it, of) = (inner.clone(), shift.clone());
    loops.spawn(async move { of.lives.recovery.keep(|| it.recover_until_stopped(&of)).await });
    let (it, of) = (inner.clone(), shift.clone());
    loops.spawn(async move { of.lives.sessions.keep(|| it.report_until_over(&of)).await });
    shift.reached(Phase::Draining).await;
    end_runs(&shift).await;
    shift.advance_to(Phase::Over);
    let all_ended = async { while loops.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_WORD, all_ended).await;
    if let Some(keeper) = keeper {
        keeper.abort();
    }
    let _ = tokio::time::timeout(LAST_WORD, caught(inner.report(&shift, true))).await;
}

impl Inner {
    async fn claim_until_stopped(self: &Arc<Self>, shift: &Arc<Shift>) {
        let (mut is_woken, mut has_failed) = (true, false);
        loop {
            if is_woken || has_failed || shift.scan_is_late(SCAN) {
                let claimed = self.claim_all(shift).await;
                has_failed = claimed.is_err();
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
                () = tokio::time::sleep(shift.jitter.shorten(SCAN)) => false,
            };
            if shift.phase() >= Phase::Draining {
                return;
            }
        }
    }

    /// Claims as long as something is ready and a slot is free. Says how many it found.
    async fn claim_all(self: &Arc<Self>, shift: &Arc<Shift>) -> Result<usize, StoreError> {
        let mut found = 0_usize;
        // A slot that becomes free wakes the claimer.
        while let Ok(slot) = self.slots.clone().try_acquire_owned() {
            let Some(claimed) = self.claim(shift).await? else { break };
            found = found.saturating_add(1);
            let (inner, shift) = (self.clone(), shift.clone());
            tokio::spawn(async move {
                inner.drive(&shift, claimed).await;
                drop(slot);
                shift.claim.notify_one();
            });
        }
        Ok(found)
    }

    /// Drives one dry run as far as it goes, unless a stop comes to its end before.
    async fn drive(&self, shift: &Arc<Shift>, Claimed { run, guard }: Claimed) {
        let id = run.id;
        let driving = caught(drive::drive(self, shift, guard.hold(), run));
        let why = tokio::select! {
            biased;
            driven = driving => match driven {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(panicked) => format!("the driver panicked: {}", panicked.0),
            },
            () = shift.reached(Phase::Abandoning) => "the worker stops".to_owned(),
        };
        tracing::info!(run = %id, why, "the dry run is left until its lease ends");
    }

    async fn recover_until_stopped(&self, shift: &Arc<Shift>) {
        loop {
            match self.recover(shift).await {
                Ok(()) => shift.lives.recovery.well(),
                Err(error) => shift.lives.recovery.failed(&with_causes(&error)),
            }
            tokio::select! {
                biased;
                () = shift.reached(Phase::Draining) => return,
                () = shift.recover.notified() => {}
                () = tokio::time::sleep(shift.jitter.shorten(SCAN)) => {}
            }
        }
    }

    async fn recover(&self, shift: &Shift) -> Result<(), StoreError> {
        let due = self.runs.work_due(&self.app, Mode::DryRun).await?;
        if due.claimable.iter().any(|footprint| self.can_preview(footprint)) {
            shift.claim.notify_one();
        }
        shift.has_scanned();
        if due.recover {
            self.runs.run_recover(Scan { app: self.app.clone(), limit: RECOVERED_AT_ONCE }).await?;
        }
        Ok(())
    }

    async fn report_until_over(&self, shift: &Arc<Shift>) {
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

    async fn report(&self, shift: &Shift, ended: bool) -> Result<(), StoreError> {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let report = SessionReport {
            session: shift.session,
            app: self.app.clone(),
            name: self.name.clone(),
            mode: Mode::DryRun,
            offers: vec![self.previews.footprint().clone()],
            tree: None,
            slots: count(SLOTS),
            busy: count(shift.holds().len()),
            stuck: count(shift.stuck()),
            ended,
        };
        self.runs.session_report(report).await
    }
}

#[async_trait]
impl Works for Inner {
    async fn drain(self: Arc<Self>, shift: Arc<Shift>) -> Result<(), WorkerError> {
        loop {
            shift.idle().await;
            if self.claim_all(&shift).await? == 0 && shift.is_idle() {
                return Ok(());
            }
        }
    }

    fn slots(&self) -> usize {
        SLOTS
    }

    fn loops(&self, shift: &Shift) -> Vec<LoopHealth> {
        let lives = &shift.lives;
        let loops = [&lives.claims, &lives.leases, &lives.recovery, &lives.sessions];
        loops.into_iter().map(|life| life.health()).collect()
    }
}
