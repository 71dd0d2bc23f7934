//! Dry runs: asking for one, and its bill.

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Activation, App, Bill, CreateDryRun, Event, Ids, LoadRequest, Mode, Phase, RunId, Scope,
    VersionId, WorkflowKey,
};

use crate::view::{BillView, RunView};
use crate::{Operator, OperatorError};

/// Which version to look at, and with what event.
#[derive(Debug, Clone, PartialEq)]
pub struct AskDryRun {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Which workflow.
    pub workflow: WorkflowKey,
    /// Which of its revisions; the live one, else the newest, if absent.
    pub revision: Option<u64>,
    /// What would occur.
    pub event: Event,
}

impl Operator {
    /// Queues a dry run of a version. A dry-run worker of the application analyses it; nothing is done.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`]: no such version, or it does not listen to the event; the event cannot be kept; the
    /// store's.
    pub async fn dry_run(&self, ids: &dyn Ids, ask: AskDryRun) -> Result<RunId, OperatorError> {
        let AskDryRun { app, scope, workflow, revision, event } = ask;
        let versions = self.store.version_list(&app, &scope, &workflow).await?;
        let wanted = match revision {
            Some(revision) => versions.iter().find(|it| it.revision == revision),
            None => versions.iter().find(|it| it.active).or(versions.first()),
        };
        let missing = || {
            let which = revision.map_or_else(String::new, |it| format!("version {it} of "));
            OperatorError::not_found(format!("{which}workflow `{workflow}` in scope `{scope}`"))
        };
        let version = wanted.ok_or_else(missing)?.version;
        let plan = self.plan(version).await?;
        let event = event.check()?;
        let activations = Activation::of_plan(&plan);
        let listens = activations.into_iter().find(|it| it.event == event.kind);
        let deaf = || {
            let what = format!("trigger of `{workflow}` for events of type `{}`", event.kind);
            OperatorError::not_found(what)
        };
        let trigger = listens.ok_or_else(deaf)?.trigger;
        let id = RunId::of_event(ids.event(), &workflow, "dry run");
        let footprint = plan.footprint.hash();
        let create = CreateDryRun { id, app, scope, workflow, version, footprint, trigger, event };
        let created = self.store.dry_run_create(create).await.map_err(|error| {
            let then = "look among the runs of mode `dry_run`; to ask again does no harm";
            OperatorError::from(error).unsure("the dry run was created", then)
        })?;
        Ok(created.id)
    }

    /// The bill of a dry run; absent while it is not over.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] if there is no such dry run.
    pub async fn bill(&self, run: RunId) -> Result<BillView, OperatorError> {
        let stored = self.store.run_load(LoadRequest { run, after: None }).await?;
        let stored = stored.filter(|it| it.run.origin.mode == Mode::DryRun);
        let stored = stored.ok_or_else(|| OperatorError::not_found(format!("dry run {run}")))?;
        let bill = match &stored.run.phase {
            Phase::Succeeded { result, .. } => serde_json::from_value::<Bill>(result.clone()).ok(),
            Phase::Queued { .. }
            | Phase::Running { .. }
            | Phase::Waiting(_)
            | Phase::NeedsAttention(_)
            | Phase::Failed { .. }
            | Phase::Canceled { .. } => None,
        };
        let detail = self.store.run_detail(run).await?;
        let revision = detail.as_ref().map_or(0, |it| it.version_revision);
        let limits = detail.map(|it| it.budget.lines()).unwrap_or_default();
        Ok(BillView { run: RunView::of(&stored.run, revision), bill, limits })
    }

    async fn plan(&self, version: VersionId) -> Result<Plan, OperatorError> {
        let stored = self.store.version_load(version).await?;
        let read = stored.and_then(|it| from_stored(&it.plan).ok());
        read.ok_or_else(|| OperatorError::not_found(format!("readable plan of version {version}")))
    }
}
