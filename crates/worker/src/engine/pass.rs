//! Bounded passes without background loops: for jobs, for tests, and for draining.

use std::sync::Arc;

use surefoot_kernel_core::{RunId, TxStore};
use tokio::task::JoinSet;

use super::Engine;
use super::keeper::{KeeperStore, keep};
use super::shift::Shift;
use crate::{Ticked, WorkerError};

impl<S: TxStore> Engine<S> {
    fn ticking(&self) -> Arc<Shift> {
        self.ticking.get_or_init(|| self.new_shift()).clone()
    }

    /// Recovers, dispatches, claims at most so many runs and drives them.
    pub(crate) async fn tick(self: &Arc<Self>, max_runs: usize) -> Result<Ticked, WorkerError> {
        let shift = self.ticking();
        self.report(&shift, false).await?;
        self.pass(&shift, max_runs, true).await
    }

    /// Claims one run and drives it.
    pub(crate) async fn run_one(self: &Arc<Self>) -> Result<Option<RunId>, WorkerError> {
        let shift = self.ticking();
        let ticked = self.pass(&shift, 1, false).await?;
        Ok(ticked.runs.first().copied())
    }

    /// Passes until one finds nothing, and nothing runs any more.
    pub(crate) async fn drain(self: &Arc<Self>, shift: &Arc<Shift>) -> Result<(), WorkerError> {
        loop {
            shift.idle().await;
            let ticked = self.pass(shift, usize::MAX, true).await?;
            let found = ticked.runs.len() + ticked.woken + ticked.dispatched;
            if found == 0 && shift.is_idle() {
                return Ok(());
            }
        }
    }

    async fn pass(
        self: &Arc<Self>,
        shift: &Arc<Shift>,
        max_runs: usize,
        recovers: bool,
    ) -> Result<Ticked, WorkerError> {
        let store: Arc<dyn KeeperStore> = self.clone();
        let keeping = keep(store, shift.clone(), self.rhythm());
        let passing = async {
            let mut ticked = Ticked::default();
            if recovers {
                let fires = self.fire_due().await?;
                let recovery = self.recover_all(shift).await?;
                ticked.woken = recovery.woken;
                ticked.finalised = recovery.finalised;
                ticked.dispatched = recovery.dispatched + fires.new;
            } else {
                self.list_footprints(shift).await?;
            }
            self.claim_and_drive(shift, max_runs, &mut ticked).await?;
            Ok(ticked)
        };
        tokio::select! {
            biased;
            ticked = passing => ticked,
            () = keeping => Err(WorkerError::Stopped),
        }
    }

    async fn claim_and_drive(
        self: &Arc<Self>,
        shift: &Arc<Shift>,
        max_runs: usize,
        ticked: &mut Ticked,
    ) -> Result<(), WorkerError> {
        let mut unanswered = None;
        // Dropping the set drops the drivers: what they held lapses like after a crash.
        let mut driving = JoinSet::new();
        let mut failed = None;
        loop {
            let left = max_runs.saturating_sub(ticked.runs.len());
            let claimed = if left == 0 || failed.is_some() {
                Ok(None)
            } else {
                self.claim(shift, left, &mut unanswered).await
            };
            // What was claimed before is driven to its end all the same.
            let claimed = claimed.unwrap_or_else(|error| {
                failed = Some(error);
                None
            });
            let launched = claimed.map(|claimed| claimed.launched).unwrap_or_default();
            let found_some = !launched.is_empty();
            for launched in launched {
                ticked.runs.push(launched.taken.run().id);
                driving.spawn(launched.drive());
            }
            // With nothing claimed, one that ends may free a slot, or may have queued itself again.
            if !found_some && driving.join_next().await.is_none() {
                return failed.map_or(Ok(()), |error| Err(error.into()));
            }
        }
    }
}
