//! Dry runs by a call of the application.

use std::time::Duration;

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Activation, Bill, CreateDryRun, Event, LoadRequest, Phase, RunId, RunState, TxStore, VersionId,
};
use surefoot_language::{Module, Previews, RunsOn};
use tokio::time::Instant;

use super::{DryRunError, DryRunWorker};
use crate::Scoped;

/// How often a dry run is looked at that another worker has, or that is not due yet.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longer than a lease and the longest backoff of the kernel's own: what has not moved for so long has nobody who would
/// move it, or waits for a time that its action gave.
const PATIENCE: Duration = Duration::from_secs(600);

impl<S: TxStore> Scoped<S> {
    /// Says what a version would do with an event, without doing it. The version need not be live; the event is not
    /// recorded, and its dedupe key is not looked at.
    ///
    /// The dry run is a run like any other: leased, journaled, and left behind for people to look at. It is analysed by
    /// this call, or by a dry-run worker that claims it first.
    ///
    /// Not cancel safe: the dry run stays queued when the future is dropped, and the next dry-run worker takes it up.
    ///
    /// # Errors
    /// Version, event and module do not fit, the dry run itself failed, or the store's word.
    pub async fn dry_run<B: RunsOn<S::Tx>>(
        &self,
        module: &Module<B>,
        version: VersionId,
        event: Event,
    ) -> Result<Bill, DryRunError> {
        let worker = DryRunWorker::of(self.kernel(), Previews::of::<S::Tx, B>(module));
        let create = self.dry_run_of(version, event).await?;
        let lacks = worker.lacks(version).await?;
        if !lacks.is_empty() {
            return Err(DryRunError::Lacking { version, lacks });
        }
        let run = self.kernel().store().dry_run_create(create).await?;
        worker.bill(run.id).await
    }

    async fn dry_run_of(
        &self,
        version: VersionId,
        event: Event,
    ) -> Result<CreateDryRun, DryRunError> {
        let (kernel, scope) = (self.kernel(), self.scope());
        let stored = kernel.store().version_load(version).await?;
        let stored = stored.filter(|it| it.app == *kernel.app() && it.scope == *scope);
        let missing = || DryRunError::NotFound { version, scope: scope.to_string() };
        let stored = stored.ok_or_else(missing)?;
        let plan: Plan = read_plan(version, &stored.plan)?;
        let event = event.check()?;
        let activations = Activation::of_plan(&plan);
        let activation = activations.into_iter().find(|it| it.event == event.kind);
        let kind = event.kind.clone();
        let activation = activation.ok_or(DryRunError::NoTrigger { version, kind })?;
        let id = RunId::of_event(kernel.ids().event(), &stored.workflow, "dry run");
        Ok(CreateDryRun {
            id,
            app: stored.app,
            scope: stored.scope,
            workflow: stored.workflow,
            version,
            footprint: plan.footprint.hash(),
            trigger: activation.trigger,
            event,
        })
    }
}

fn read_plan(version: VersionId, text: &str) -> Result<Plan, DryRunError> {
    let why = |error: serde_json::Error| error.to_string();
    from_stored(text).map_err(|error| DryRunError::Unreadable { version, why: why(error) })
}

impl DryRunWorker {
    /// Analyses until this dry run is over; what another worker has is waited for.
    async fn bill(&self, run: RunId) -> Result<Bill, DryRunError> {
        let mut seen = (None, Instant::now());
        loop {
            let worked = self.run_one().await?.is_some();
            let stored = self.inner().runs.run_load(LoadRequest { run, after: None }).await?;
            let state = stored.as_ref().map(|it| it.run.state());
            let ended = |failure| DryRunError::Ended {
                run,
                state: state.unwrap_or(RunState::Canceled),
                failure,
            };
            let row = stored.map(|it| it.run).ok_or_else(|| ended(None))?;
            let (stamp, due) = (row.stamp(), row.claimable_at());
            match row.phase {
                Phase::Succeeded { result, .. } => {
                    let bill = serde_json::from_value(result);
                    return bill.map_err(|_| ended(None));
                }
                Phase::Failed { error, .. } => return Err(ended(Some(error))),
                Phase::NeedsAttention(attention) => return Err(ended(Some(attention.error))),
                Phase::Canceled { .. } => return Err(ended(None)),
                Phase::Queued { .. } | Phase::Running { .. } | Phase::Waiting(_) => {}
            }
            if seen.0 != Some(stamp) {
                seen = (Some(stamp), Instant::now());
            }
            let waited = seen.1.elapsed();
            if waited >= PATIENCE {
                let state = state.unwrap_or(RunState::Queued);
                return Err(DryRunError::Unfinished { run, state, due, waited });
            }
            if !worked {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }
}
