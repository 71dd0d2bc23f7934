//! Plans built by hand, without source text: what tests of stores and of the core run.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use surefoot_kernel_core::expr::{Expr, Template};
use surefoot_kernel_core::plan::{
    ActionPolicy, Delay, Footprint, Hashes, LANGUAGE_VERSION, ModuleRef, PLAN_SCHEMA, Plan,
    PlanLimits, RetryPolicy, SchedulePlan, Step, StepKind, TriggerPlan,
};
use surefoot_kernel_core::{Code, EffectClass, Micros, canonical, schedule_event};

/// A step, with the policies of the actions that it names.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanStep {
    step: Step,
    policies: BTreeMap<String, ActionPolicy>,
}

impl PlanStep {
    fn new(kind: StepKind) -> Self {
        let step = Step { kind, save_as: None, label: None, line: 1 };
        Self { step, policies: BTreeMap::new() }
    }

    fn with(mut self, inner: &[Self]) -> Self {
        self.policies.extend(inner.iter().flat_map(|step| step.policies.clone()));
        self
    }

    /// Binds its output to a name.
    #[must_use]
    pub fn save_as(mut self, name: &str) -> Self {
        self.step.save_as = Some(name.to_owned());
        self
    }

    /// With a config that is rendered when the step runs. Actions only.
    #[must_use]
    pub fn config(mut self, template: Template) -> Self {
        if let StepKind::Action { config, .. } = &mut self.step.kind {
            *config = template;
        }
        self
    }

    /// With steps that handle its failure. Actions only.
    #[must_use]
    pub fn catch(mut self, steps: Vec<PlanStep>) -> Self {
        if let StepKind::Action { catch, .. } = &mut self.step.kind {
            *catch = Some(steps.iter().map(|step| step.step.clone()).collect());
        }
        self.with(&steps)
    }

    /// With so many executions that may end badly in a row. Actions only.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.policies.values_mut().for_each(|policy| policy.retry.attempts = attempts);
        self
    }

    /// With a time for which a provider's `NotFound` proves nothing. Actions only.
    #[must_use]
    pub fn settle_after(mut self, span: Micros) -> Self {
        self.policies.values_mut().for_each(|policy| policy.settle_after = Some(span));
        self
    }
}

/// An action of a class, with an empty config and the default policy.
#[must_use]
pub fn action(name: &str, class: EffectClass) -> PlanStep {
    let config = Template::Literal(json!({}));
    let kind = StepKind::Action {
        action: name.to_owned(),
        config,
        timeout: None,
        retry: None,
        catch: None,
    };
    let output = (class != EffectClass::Pure).then(|| json!({}));
    let policy = ActionPolicy { class, retry: RetryPolicy::default(), settle_after: None, output };
    let mut step = PlanStep::new(kind);
    step.policies.insert(name.to_owned(), policy);
    step
}

/// A pure action.
#[must_use]
pub fn pure(name: &str) -> PlanStep {
    action(name, EffectClass::Pure)
}

/// A transactional action.
#[must_use]
pub fn transactional(name: &str) -> PlanStep {
    action(name, EffectClass::Transactional)
}

/// An idempotent action.
#[must_use]
pub fn idempotent(name: &str) -> PlanStep {
    action(name, EffectClass::Idempotent)
}

/// An ambiguous action.
#[must_use]
pub fn ambiguous(name: &str) -> PlanStep {
    action(name, EffectClass::Ambiguous)
}

/// A step that parks the run for a span.
#[must_use]
pub fn delay(span: Micros) -> PlanStep {
    PlanStep::new(StepKind::Delay(Delay::For(span)))
}

/// A step that waits for a signal in the run's own scope.
#[must_use]
pub fn wait_for(kind: &str, key: &str, timeout: Option<Micros>) -> PlanStep {
    let text = |text: &str| Template::Literal(Value::from(text));
    PlanStep::new(StepKind::WaitFor { signal: text(kind), key: text(key), timeout })
}

/// A step that binds a name to a value.
#[must_use]
pub fn set(name: &str, value: Template) -> PlanStep {
    PlanStep::new(StepKind::SetVariable { name: name.to_owned(), value })
}

/// A step that runs others if a condition holds.
#[must_use]
pub fn when(condition: Expr, then: Vec<PlanStep>) -> PlanStep {
    let steps = then.iter().map(|step| step.step.clone()).collect();
    PlanStep::new(StepKind::If { condition, then: steps, otherwise: None }).with(&then)
}

/// A step that runs others for each item of a list.
#[must_use]
pub fn each(over: Template, item: &str, body: Vec<PlanStep>) -> PlanStep {
    let steps = body.iter().map(|step| step.step.clone()).collect();
    PlanStep::new(StepKind::ForEach { over, item: item.to_owned(), body: steps }).with(&body)
}

/// A step that ends the run well.
#[must_use]
pub fn succeed(message: &str) -> PlanStep {
    PlanStep::new(StepKind::Succeed { message: Template::Literal(Value::from(message)) })
}

/// A step that ends the run badly.
#[must_use]
pub fn fail(code: Code, message: &str) -> PlanStep {
    let message = Template::Literal(Value::from(message));
    PlanStep::new(StepKind::Fail { message, code: Some(code) })
}

/// A plan of these steps, without inputs and triggers.
#[must_use]
pub fn plan(steps: Vec<PlanStep>) -> Plan {
    let policies: BTreeMap<String, ActionPolicy> =
        steps.iter().flat_map(|step| step.policies.clone()).collect();
    let used = |(name, policy): (&String, &ActionPolicy)| {
        (format!("action/{name}"), canonical::hash_text(policy.class.as_str()))
    };
    Plan {
        schema: PLAN_SCHEMA,
        language: LANGUAGE_VERSION,
        module: ModuleRef { id: "testkit".to_owned(), version: 1 },
        hashes: Hashes {
            source: canonical::hash_text("source"),
            manifest: canonical::hash_text("manifest"),
            catalog: canonical::hash_text("catalog"),
        },
        footprint: Footprint {
            module: "testkit".to_owned(),
            uses: policies.iter().map(used).collect(),
        },
        policies,
        inputs: BTreeMap::new(),
        triggers: BTreeMap::new(),
        steps: steps.into_iter().map(|step| step.step).collect(),
        bindings: BTreeMap::new(),
        limits: PlanLimits { loop_items: 100 },
    }
}

/// The plan, with a schedule more: it starts runs without inputs.
#[must_use]
pub fn scheduled(mut plan: Plan, name: &str, cron: &str, timezone: Option<&str>) -> Plan {
    let timezone = timezone.map(str::to_owned);
    let schedule = Some(SchedulePlan { cron: cron.to_owned(), timezone });
    let event = schedule_event(name);
    plan.triggers.insert(name.to_owned(), TriggerPlan { event, with: BTreeMap::new(), schedule });
    plan
}

/// The plan, with a trigger more: events of this type start runs, without inputs.
#[must_use]
pub fn triggered(mut plan: Plan, kind: &str, event: &str) -> Plan {
    let trigger = TriggerPlan { event: event.to_owned(), with: BTreeMap::new(), schedule: None };
    plan.triggers.insert(kind.to_owned(), trigger);
    plan
}

/// A step that runs another workflow.
#[must_use]
pub fn run_workflow(workflow: &str) -> PlanStep {
    let (workflow, inputs) = (Value::from(workflow), json!({}));
    let (workflow, inputs) = (Template::Literal(workflow), Template::Literal(inputs));
    PlanStep::new(StepKind::RunWorkflow { workflow, inputs })
}

/// A step that runs another workflow so many times.
#[must_use]
pub fn run_workflows(workflow: &str, count: usize, parallel: Option<u32>) -> PlanStep {
    PlanStep::new(StepKind::RunWorkflows {
        workflow: Template::Literal(Value::from(workflow)),
        each: Template::Literal(Value::Array(vec![Value::Null; count])),
        item: "item".to_owned(),
        inputs: Template::Literal(json!({})),
        parallel,
    })
}
