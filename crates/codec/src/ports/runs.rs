//! Runs.

use async_trait::async_trait;
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    App, ClaimRequest, Commit, Committed, CreateDryRun, EmitError, LoadRequest, Mode, Plans,
    Recovered, RenewRequest, Renewed, RestoreInvalid, Run, RunId, RunStore, Scan, SessionReport,
    Stamp, StoreError, Stored, TakeOverRequest, Timestamp, WorkDue,
};

use crate::store::Site;
use crate::{CodecStore, View};

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: RunStore, V: View> RunStore for CodecStore<S, V> {
    async fn store_now(&self) -> Result<Timestamp, StoreError> {
        self.inner.store_now().await
    }

    async fn dry_run_create(&self, mut create: CreateDryRun) -> Result<Run, EmitError> {
        let site = Site { app: &create.app, scope: Some(&create.scope) };
        create.event = self.encoder(site).event(create.event).map_err(StoreError::from)?;
        let mut run = self.inner.dry_run_create(create).await?;
        self.decode_row(&mut run);
        Ok(run)
    }

    /// A run that cannot be decoded is claimed like any other: its worker loads it, and puts it before a person.
    async fn run_claim(&self, mut request: ClaimRequest) -> Result<Vec<Stored>, StoreError> {
        // Inputs are computed from what can be read, which is not what the store has.
        request.plans = Plans::default();
        let mut claimed = self.inner.run_claim(request).await?;
        for stored in &mut claimed {
            self.decode_if_possible(stored);
        }
        Ok(claimed)
    }

    async fn run_load(&self, request: LoadRequest) -> Result<Option<Stored>, StoreError> {
        let Some(mut stored) = self.inner.run_load(request).await? else { return Ok(None) };
        self.decode_stored(&mut stored)?;
        Ok(Some(stored))
    }

    async fn run_commit(&self, mut commit: Commit) -> Result<Committed, StoreError> {
        let hidden = self.hidden_of(&mut commit.after).await?;
        let origin = commit.after.origin.clone();
        let commit = self.encoder(Site::of(&origin)).commit(commit, hidden)?;
        let mut committed = self.inner.run_commit(commit).await?;
        self.decode_row(&mut committed.run);
        Ok(committed)
    }

    async fn run_take_over(&self, request: TakeOverRequest) -> Result<Option<Run>, StoreError> {
        let mut run = self.inner.run_take_over(request).await?;
        run.iter_mut().for_each(|run| self.decode_row(run));
        Ok(run)
    }

    async fn lease_renew(
        &self,
        request: RenewRequest,
    ) -> Result<Vec<(RunId, Renewed)>, StoreError> {
        self.inner.lease_renew(request).await
    }

    async fn cancel_list(&self, held: &[Stamp]) -> Result<Vec<RunId>, StoreError> {
        self.inner.cancel_list(held).await
    }

    async fn run_open(&self, app: &App, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        self.inner.run_open(app, runs).await
    }

    async fn run_recover(&self, scan: Scan) -> Result<Recovered, StoreError> {
        self.inner.run_recover(scan).await
    }

    async fn work_due(&self, app: &App, mode: Mode) -> Result<WorkDue, StoreError> {
        self.inner.work_due(app, mode).await
    }

    async fn footprint_list(&self, app: &App) -> Result<Vec<Footprint>, StoreError> {
        self.inner.footprint_list(app).await
    }

    async fn session_report(&self, report: SessionReport) -> Result<(), StoreError> {
        self.inner.session_report(report).await
    }
}

impl<S, V: View> CodecStore<S, V> {
    /// A run that came to a worker did so in any case: whoever drives it reads it again, and hears why it cannot be
    /// decoded.
    pub(super) fn decode_if_possible(&self, stored: &mut Stored) {
        if self.decode_stored(stored).is_err() {
            stored.invocation = None;
        }
    }

    /// A run that goes on must not go on with a placeholder: what cannot be decoded makes its journal unreadable, which
    /// is a person's matter. Of a run that has ended the row is all that people ask for.
    pub(super) fn decode_stored(&self, stored: &mut Stored) -> Result<(), StoreError> {
        let origin = stored.run.origin.clone();
        let mut decoder = self.decoder(Site::of(&origin));
        decoder.run(&mut stored.run);
        if stored.run.state().is_terminal()
            && let Some(fault) = decoder.take_fault()
        {
            return Err(fault.of_run(stored.run.id));
        }
        if let Some(invocation) = &mut stored.invocation {
            decoder.invocation(invocation);
        }
        if let Ok(journal) = &mut stored.journal {
            decoder.journal(journal);
        }
        match decoder.take_fault() {
            Some(fault) if fault.is_transient() => return Err(fault.of_run(stored.run.id)),
            Some(fault) => stored.journal = Err(RestoreInvalid { what: fault.sentence() }),
            None => {}
        }
        Ok(())
    }
}
