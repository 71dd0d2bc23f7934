//! What a run and its children need of the process that works for them, told before any of it is done.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use surefoot_actions::ai::AI_ACTIONS;
use surefoot_actions::http::secrets_named;
use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::{Footprint, Plan, StepKind};
use surefoot_kernel_core::{
    App, Coverage, Mode, OperatorStore as _, PlanStore as _, RunStore as _, Scope, WorkflowKey,
};
use surefoot_operator::OperatorError;
use surefoot_store_sqlite::SqliteStore;

use crate::builtin::{Settings, has_secret};
use crate::error::CliError;

/// Where a run is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) app: App,
    pub(super) scope: Scope,
}

/// What is needed, and by which workflow.
#[derive(Debug, Default)]
pub(super) struct Needs {
    secrets: BTreeMap<String, WorkflowKey>,
    models: BTreeSet<WorkflowKey>,
    /// Of another module, and no worker that has it was seen.
    foreign: Vec<(WorkflowKey, String)>,
}

impl Needs {
    /// Of a workflow alone.
    pub(super) fn of(workflow: &WorkflowKey, plan: &Plan) -> Self {
        let mut needs = Self::default();
        needs.add(workflow, plan);
        needs
    }

    /// The same with all the workflows that it runs, and those that they run, as far as they are named. Of one whose name
    /// is an expression nothing is known yet.
    pub(super) async fn of_tree(
        store: &SqliteStore,
        place: &Place,
        workflow: &WorkflowKey,
        plan: &Plan,
        offered: &Footprint,
    ) -> Result<Self, CliError> {
        let mut needs = Self::of(workflow, plan);
        let mut seen = BTreeSet::from([workflow.clone()]);
        let mut open = children_of(plan);
        while let Some(child) = open.pop() {
            if !seen.insert(child.clone()) {
                continue;
            }
            let Some(plan) = live(store, place, &child).await? else { continue };
            if plan.footprint.is_contained_in(offered) {
                needs.add(&child, &plan);
                open.extend(children_of(&plan));
            } else if !is_covered(store, &place.app, &plan.footprint).await? {
                let lacks = plan.footprint.missing_in(offered).join(", ");
                needs.foreign.push((child, lacks));
            }
        }
        Ok(needs)
    }

    fn add(&mut self, workflow: &WorkflowKey, plan: &Plan) {
        for secret in secrets_named(plan) {
            self.secrets.entry(secret).or_insert_with(|| workflow.clone());
        }
        let asks = |name: &&str| plan.footprint.uses.contains_key(&format!("action/{name}"));
        if AI_ACTIONS.iter().any(asks) {
            self.models.insert(workflow.clone());
        }
    }

    /// Whether this process has all of it.
    pub(super) async fn check(self, settings: &Settings) -> Result<(), CliError> {
        let mut lacking = Vec::new();
        if let (None, Some(workflow)) = (&settings.ai, self.models.first()) {
            lacking.push(format!(
                "the workflow `{workflow}` asks a model: name a provider with `--ai-url` and `--ai-model`"
            ));
        }
        for (secret, workflow) in &self.secrets {
            if !has_secret(secret).await {
                lacking.push(format!(
                    "the workflow `{workflow}` names the secret `{secret}`: set `SUREFOOT_SECRET_{secret}`, or \
                     `SUREFOOT_SECRET_{secret}_FILE` to the path of a file with it"
                ));
            }
        }
        for (workflow, lacks) in &self.foreign {
            lacking.push(format!(
                "the workflow `{workflow}`, which it runs, needs {lacks}: no worker that has it was seen in the last minute"
            ));
        }
        if lacking.is_empty() { Ok(()) } else { Err(CliError::Usage(lacking.join("; "))) }
    }
}

fn children_of(plan: &Plan) -> Vec<WorkflowKey> {
    let named = plan.all_steps().into_iter().filter_map(|step| match &step.kind {
        StepKind::RunWorkflow { workflow, .. } | StepKind::RunWorkflows { workflow, .. } => {
            Some(workflow)
        }
        StepKind::Action { .. }
        | StepKind::If { .. }
        | StepKind::Switch { .. }
        | StepKind::ForEach { .. }
        | StepKind::SetVariable { .. }
        | StepKind::Succeed { .. }
        | StepKind::Fail { .. }
        | StepKind::Delay(_)
        | StepKind::WaitFor { .. } => None,
    });
    let literal = |template: &Template| match template {
        Template::Literal(Value::String(name)) => name.parse().ok(),
        Template::Literal(_)
        | Template::Expr(_)
        | Template::Text(_)
        | Template::List(_)
        | Template::Object(_) => None,
    };
    named.filter_map(literal).collect()
}

/// The plan that a child of this name would have now. The step that runs one that is not there says so itself.
async fn live(
    store: &SqliteStore,
    place: &Place,
    workflow: &WorkflowKey,
) -> Result<Option<Plan>, CliError> {
    let versions = store.version_list(&place.app, &place.scope, workflow).await;
    let versions = versions.map_err(OperatorError::from)?;
    let Some(active) = versions.into_iter().find(|version| version.active) else { return Ok(None) };
    let stored = store.version_load(active.version).await.map_err(OperatorError::from)?;
    Ok(stored.and_then(|stored| from_stored(&stored.plan).ok()))
}

async fn is_covered(
    store: &SqliteStore,
    app: &App,
    footprint: &Footprint,
) -> Result<bool, CliError> {
    let sessions = store.session_list(app).await.map_err(OperatorError::from)?;
    let now = store.store_now().await.map_err(OperatorError::from)?;
    Ok(Coverage::of(footprint, Mode::Execute, &sessions, now) == Coverage::Covered)
}
