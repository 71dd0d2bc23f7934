//! Plans by hand: the compiler is not needed to test workers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use surefoot_kernel_core::expr::{Expr, Template};
use surefoot_kernel_core::plan::{
    ActionPolicy, Delay, Hashes, LANGUAGE_VERSION, PLAN_SCHEMA, Plan, PlanLimits, SchedulePlan,
    Step, StepKind, TriggerPlan,
};
use surefoot_kernel_core::{EffectClass, Micros};
use surefoot_language::Manifest;

fn step(kind: StepKind) -> Step {
    Step { kind, save_as: None, label: None, line: 1 }
}

/// An action's step.
pub(crate) fn act(action: &str, config: Value) -> Step {
    let config = Template::Literal(config);
    step(StepKind::Action {
        action: action.to_owned(),
        config,
        timeout: None,
        retry: None,
        catch: None,
    })
}

/// The same with a config that is one expression.
pub(crate) fn act_on(action: &str, name: &str, member: &str) -> Step {
    let config = Template::Expr(Expr::Name(name.to_owned()));
    let config = if member.is_empty() {
        config
    } else {
        Template::Object(vec![(member.to_owned(), config)])
    };
    step(StepKind::Action {
        action: action.to_owned(),
        config,
        timeout: None,
        retry: None,
        catch: None,
    })
}

pub(crate) fn timed(mut of: Step, limit: Micros) -> Step {
    if let StepKind::Action { timeout, .. } = &mut of.kind {
        *timeout = Some(limit);
    }
    of
}

/// With steps that handle its failure.
pub(crate) fn caught(mut of: Step, steps: Vec<Step>) -> Step {
    if let StepKind::Action { catch, .. } = &mut of.kind {
        *catch = Some(steps);
    }
    of
}

pub(crate) fn saved(mut of: Step, name: &str) -> Step {
    of.save_as = Some(name.to_owned());
    of
}

pub(crate) fn set(name: &str, value: Value) -> Step {
    let (name, value) = (name.to_owned(), Template::Literal(value));
    step(StepKind::SetVariable { name, value })
}

pub(crate) fn each(items: Value, body: Vec<Step>) -> Step {
    step(StepKind::ForEach { over: Template::Literal(items), item: "item".to_owned(), body })
}

pub(crate) fn delay(seconds: i64) -> Step {
    step(StepKind::Delay(Delay::For(Micros::from_secs(seconds))))
}

pub(crate) fn wait_for(kind: &str, key: &str, timeout: Option<Micros>) -> Step {
    let literal = |text: &str| Template::Literal(json!(text));
    step(StepKind::WaitFor { signal: literal(kind), key: literal(key), timeout })
}

pub(crate) fn run_workflow(workflow: &str, inputs: Value) -> Step {
    let workflow = Template::Literal(json!(workflow));
    step(StepKind::RunWorkflow { workflow, inputs: Template::Literal(inputs) })
}

/// A child for each number below `count`, which is its input `n`.
pub(crate) fn run_workflows(workflow: &str, count: usize, parallel: Option<u32>) -> Step {
    let item = Template::Expr(Expr::Name("item".to_owned()));
    step(StepKind::RunWorkflows {
        workflow: Template::Literal(json!(workflow)),
        each: Template::Literal((0..count).collect::<Vec<_>>().into()),
        item: "item".to_owned(),
        inputs: Template::Object(vec![("n".to_owned(), item)]),
        parallel,
    })
}

/// The plan, with a number `n` as input.
pub(crate) fn with_n(mut plan: Plan) -> Plan {
    let kind = surefoot_kernel_core::plan::InputType::Integer;
    let n = surefoot_kernel_core::plan::Input { kind, required: false, default: None, label: None };
    plan.inputs.insert("n".to_owned(), n);
    plan
}

/// A plan of these steps, bound to a module's manifest.
pub(crate) fn plan(manifest: &Manifest, steps: Vec<Step>) -> Plan {
    let mut used = BTreeSet::new();
    collect(&steps, &mut used);
    let policy = |decl: &surefoot_language::ActionDecl| ActionPolicy {
        class: decl.class,
        retry: decl.retry.clone(),
        settle_after: decl.settle_after,
        output: (decl.class != EffectClass::Pure).then(|| decl.output.clone()),
    };
    let policies = manifest
        .actions
        .iter()
        .filter(|decl| used.contains(&format!("action/{}", decl.name)))
        .map(|decl| (decl.name.clone(), policy(decl)))
        .collect();
    Plan {
        schema: PLAN_SCHEMA,
        language: LANGUAGE_VERSION,
        module: manifest.module(),
        hashes: Hashes { source: String::new(), manifest: manifest.hash(), catalog: String::new() },
        footprint: manifest.footprint_of(&used),
        policies,
        inputs: BTreeMap::new(),
        triggers: BTreeMap::new(),
        steps,
        bindings: BTreeMap::new(),
        limits: PlanLimits { loop_items: 100 },
    }
}

/// With a schedule, in UTC.
pub(crate) fn scheduled(mut plan: Plan, name: &str, cron: &str) -> Plan {
    let schedule = Some(SchedulePlan { cron: cron.to_owned(), timezone: None });
    let event = surefoot_kernel_core::schedule_event(name);
    plan.triggers.insert(name.to_owned(), TriggerPlan { event, with: BTreeMap::new(), schedule });
    plan
}

fn collect(steps: &[Step], used: &mut BTreeSet<String>) {
    for step in steps {
        match &step.kind {
            StepKind::Action { action, catch, .. } => {
                used.insert(format!("action/{action}"));
                collect(catch.as_deref().unwrap_or_default(), used);
            }
            StepKind::If { then, otherwise, .. } => {
                collect(then, used);
                collect(otherwise.as_deref().unwrap_or_default(), used);
            }
            StepKind::Switch { cases, default, .. } => {
                cases.iter().for_each(|case| collect(&case.steps, used));
                collect(default.as_deref().unwrap_or_default(), used);
            }
            StepKind::ForEach { body, .. } => collect(body, used),
            StepKind::SetVariable { .. }
            | StepKind::Succeed { .. }
            | StepKind::Fail { .. }
            | StepKind::Delay(_)
            | StepKind::WaitFor { .. }
            | StepKind::RunWorkflow { .. }
            | StepKind::RunWorkflows { .. } => {}
        }
    }
}
