//! From a file, or from a run that is there, to a run to work for.

use std::path::Path;

use serde_json::Value;
use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    App, Emission, Event, Mode, OperatorStore as _, PlanStore as _, RunId, START_EVENT, Scope,
    WorkflowKey,
};
use surefoot_language::{Bindings, Manifest};
use surefoot_operator::OperatorError;
use surefoot_store_sqlite::SqliteStore;
use surefoot_worker::{Kernel, Publication};

use super::needs::{Needs, Place};
use super::work::{Task, work};
use super::{RunArgs, keyed, preview, unfinished};
use crate::builtin::{self, Settings};
use crate::command::publish::refused;
use crate::command::{Context, Printed};
use crate::error::CliError;
use crate::input::{json_of, text_of};
use crate::page::{clean, quoting, to_stderr};
use crate::store::{self, Need};

/// App and scope where none is named.
const LOCAL: &str = "local";

/// Publishes a workflow if it is not live as it stands, starts it, and works for it.
pub(super) async fn start(
    cx: &Context<'_>,
    settings: &Settings,
    file: &Path,
    args: &RunArgs,
) -> Result<Printed, CliError> {
    let workflow = key_of(args.workflow.as_ref(), file)?;
    let source = text_of(file)?;
    let inputs = json_of("`--inputs`", &args.inputs)?;
    let place = Place {
        app: cx.named_app().unwrap_or_else(|| App::from(LOCAL)),
        scope: cx.named_scope().unwrap_or_else(|| Scope::from(LOCAL)),
    };
    // Nothing is opened, let alone created, for a workflow that cannot run.
    let scratch = SqliteStore::in_memory().await.map_err(CliError::Scratch)?;
    let offered = builtin::whole(&scratch, settings)?;
    let compiled = builtin::compile_and_bind(&source, offered.manifest(), &Bindings::new()).await?;
    let (plan, findings) = match compiled {
        Ok(compiled) => compiled,
        Err(findings) => return refused(cx, file, &findings),
    };
    if !findings.is_empty() {
        to_stderr(&quoting(&(findings.render(&file.display().to_string(), false) + "\n"), false));
    }
    let from = From { workflow, source, plan, inputs, key: args.key.clone() };
    from.check()?;
    if args.dry_run {
        let From { workflow, source, inputs, .. } = from;
        return preview::preview(cx, scratch, &offered, place, workflow, source, inputs).await;
    }
    Needs::of(&from.workflow, &from.plan).check(settings).await?;
    let store = store::embedded(cx.store_url(), Need::Created).await?;
    let needs = Needs::of_tree(&store, &place, &from.workflow, &from.plan, offered.footprint());
    needs.await?.check(settings).await?;
    tell_of_triggers(&from.plan);
    let run = from.begin(cx, &store, &place, offered.manifest()).await?;
    unfinished::tell(cx, &store, &place, run).await?;
    work(cx, store, Task { settings, app: place.app, run }).await
}

/// Its author may wait for something that this command does not do.
fn tell_of_triggers(plan: &Plan) {
    if !plan.triggers.is_empty() {
        let named: Vec<String> =
            plan.triggers.keys().map(|key| clean(&format!("`{key}`"))).collect();
        to_stderr(&format!(
            "started once, now: this command waits for no trigger ({}); only a worker of an application does\n",
            named.join(", ")
        ));
    }
}

/// What a run is started from.
struct From {
    workflow: WorkflowKey,
    source: String,
    plan: Plan,
    inputs: Value,
    key: Option<String>,
}

impl From {
    fn event(&self) -> Event {
        let event = Event::start(self.workflow.clone(), self.inputs.clone());
        match &self.key {
            Some(key) => event.dedupe_key(keyed::of_event(&self.workflow, key)),
            None => event,
        }
    }

    /// Told before an event is recorded: it would use its key up for a run that fails at once.
    fn check(&self) -> Result<(), CliError> {
        self.event().check().map_err(OperatorError::from)?;
        self.plan.check_inputs(&self.inputs).map_err(|why| CliError::Inputs {
            workflow: self.workflow.clone(),
            why: Box::new(why),
            takes: takes(&self.plan),
        })
    }

    async fn begin(
        self,
        cx: &Context<'_>,
        store: &SqliteStore,
        place: &Place,
        manifest: &Manifest,
    ) -> Result<RunId, CliError> {
        let scoped = Kernel::new(place.app.clone(), store.clone()).scope(place.scope.clone());
        let is_known = self.is_known(cx, store, place).await?;
        if !is_known {
            self.check_enabled(cx, store, place).await?;
        }
        if !is_known && !self.is_live(store, place).await? {
            let publication = Publication::new(self.workflow.clone(), self.source.clone());
            scoped.publish(manifest, publication.author(cx.actor())).await?;
        }
        let emission = scoped.emit(self.event()).await?;
        let run = started(cx, &emission, self.key.as_deref())?;
        if let Some(key) = self.key.as_deref().filter(|_| !is_known && !emission.new) {
            // Another command was faster in between.
            keyed::check_file(cx, store, (key, run), &self.plan).await?;
        }
        Ok(run)
    }

    /// Whether its key has a run already, which is one of this file.
    async fn is_known(
        &self,
        cx: &Context<'_>,
        store: &SqliteStore,
        place: &Place,
    ) -> Result<bool, CliError> {
        let Some(key) = &self.key else { return Ok(false) };
        let dedupe_key = keyed::of_event(&self.workflow, key);
        let Some(event) = keyed::find(store, place, &dedupe_key).await? else { return Ok(false) };
        let run = *event.runs.first().ok_or_else(|| keyed::gone(key))?;
        keyed::check_file(cx, store, (key, run), &self.plan).await?;
        Ok(true)
    }

    /// Whether the live version is this one: publishing it again would make another.
    async fn is_live(&self, store: &SqliteStore, place: &Place) -> Result<bool, CliError> {
        let versions = store.version_list(&place.app, &place.scope, &self.workflow).await;
        let versions = versions.map_err(OperatorError::from)?;
        let live = versions.iter().find(|version| version.active);
        Ok(live.is_some_and(|version| version.plan_hash == self.plan.hash()))
    }

    /// An event that starts nothing would use its key up as well.
    async fn check_enabled(
        &self,
        cx: &Context<'_>,
        store: &SqliteStore,
        Place { app, scope }: &Place,
    ) -> Result<(), CliError> {
        let rows = store.workflow_list(app, Some(scope)).await.map_err(OperatorError::from)?;
        let own = rows.into_iter().filter(|row| row.workflow == self.workflow);
        let mut activations = own.flat_map(|row| row.activations);
        if activations.any(|(_, event, is_enabled)| event == START_EVENT && !is_enabled) {
            let enable = cx.typed(&format!("enable {} --scope {scope}", self.workflow));
            return Err(CliError::Usage(format!(
                "`{}` is switched off, and nothing was started: `{enable} --reason <why>` switches it on",
                self.workflow
            )));
        }
        Ok(())
    }
}

/// What a workflow may be started with.
fn takes(plan: &Plan) -> String {
    let inputs = plan.inputs.iter().map(|(name, input)| {
        let required = if input.required { ", required" } else { "" };
        format!("`{name}` ({}{required})", input.kind.as_str())
    });
    let inputs = inputs.collect::<Vec<_>>().join(", ");
    if inputs.is_empty() { "it takes none".to_owned() } else { format!("it takes {inputs}") }
}

fn started(cx: &Context<'_>, emission: &Emission, key: Option<&str>) -> Result<RunId, CliError> {
    let Some(run) = emission.runs.first() else {
        return Err(match key.filter(|_| !emission.new) {
            Some(key) => keyed::gone(key),
            None => CliError::Usage("the workflow was switched off meanwhile".to_owned()),
        });
    };
    if emission.new {
        return Ok(*run);
    }
    let key = key.unwrap_or_default();
    if !emission.same_payload {
        let resume = cx.typed(&format!("run --resume {run}"));
        return Err(CliError::Usage(format!(
            "under the key `{key}` a run with other inputs was started: go on with it by `{resume}`, or choose another key"
        )));
    }
    to_stderr(&format!("the run of the key `{key}` was started before: {run}\n"));
    Ok(*run)
}

/// Works for a run that is there.
pub(super) async fn resume(
    cx: &Context<'_>,
    settings: &Settings,
    run: RunId,
) -> Result<Printed, CliError> {
    let operator = cx.operator_for(run).await?;
    let store = store::embedded(cx.store_url(), Need::Existing).await?;
    let detail = store.run_detail(run).await.map_err(OperatorError::from)?;
    let detail = detail.ok_or_else(|| OperatorError::NotFound { what: format!("run {run}") })?;
    let origin = &detail.run.origin;
    if origin.mode == Mode::DryRun {
        return Err(CliError::Usage(format!("{run} is a dry run: nothing of it is left to do")));
    }
    if origin.root != run {
        let whole = cx.typed(&format!("run --resume {}", origin.root));
        return Err(CliError::Usage(format!(
            "{run} is a part of another run, and goes on with it: `{whole}`"
        )));
    }
    if detail.run.state().is_terminal() {
        drop(operator);
        return work(cx, store, Task { settings, app: origin.app.clone(), run }).await;
    }
    let plan: Plan = from_stored(&detail.plan).map_err(|_| {
        CliError::Usage(format!("the plan of {run} cannot be read by this version"))
    })?;
    let offered = builtin::whole(&store, settings)?;
    if !plan.footprint.is_contained_in(offered.footprint()) {
        let lacks = plan.footprint.missing_in(offered.footprint()).join(", ");
        return Err(CliError::Usage(format!(
            "{run} is not made of the ready-made actions of this version alone, it also needs {lacks}: a worker of its \
             application goes on with it"
        )));
    }
    let place = Place { app: origin.app.clone(), scope: origin.scope.clone() };
    let needs = Needs::of_tree(&store, &place, &origin.workflow, &plan, offered.footprint());
    needs.await?.check(settings).await?;
    work(cx, store, Task { settings, app: place.app, run }).await
}

fn key_of(named: Option<&WorkflowKey>, file: &Path) -> Result<WorkflowKey, CliError> {
    if let Some(key) = named {
        return Ok(key.clone());
    }
    let stem = file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != "-");
    stem.unwrap_or("workflow")
        .parse()
        .map_err(|bad| CliError::Usage(format!("{bad}: name it with `--workflow`")))
}
