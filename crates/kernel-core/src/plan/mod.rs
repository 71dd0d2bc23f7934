//! The plan: a compiled and bound workflow, immutable, with a hash.

mod diff;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::expr::{Expr, Template};
use crate::{Code, EffectClass, Micros};

pub use diff::{ActionDiff, ActionUse, Change, OtherDiff, PlanDiff, StepDiff};

/// The schema version that this build writes. Plans of every released version stay readable.
pub const PLAN_SCHEMA: u32 = 1;
/// The version of the language that this build compiles.
pub const LANGUAGE_VERSION: u32 = 1;
/// What a `catch` calls the failure that it handles: `error.code` and `error.message`.
pub const CAUGHT_ERROR: &str = "error";
/// Bytes of a step key.
pub const STEP_KEY_MAX_BYTES: usize = 1_000;

/// What a run executes. Everything that decides its behaviour is here; nothing is looked up by a mutable name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// [`PLAN_SCHEMA`] when it was compiled.
    pub schema: u32,
    /// [`LANGUAGE_VERSION`] when it was compiled.
    pub language: u32,
    /// The module it was compiled against.
    pub module: ModuleRef,
    /// SHA-256 of what it was made of.
    pub hashes: Hashes,
    /// What of its module it uses: decides whether a worker can run it.
    pub footprint: Footprint,
    /// Per action that the plan names.
    pub policies: BTreeMap<String, ActionPolicy>,
    /// The declared inputs by name.
    pub inputs: BTreeMap<String, Input>,
    /// The triggers by kind.
    pub triggers: BTreeMap<String, TriggerPlan>,
    /// The top-level steps; never empty.
    pub steps: Vec<Step>,
    /// `kind` → `name` → pinned id.
    pub bindings: BTreeMap<String, BTreeMap<String, String>>,
    /// Limits that hold while it runs.
    pub limits: PlanLimits,
}

impl Plan {
    /// SHA-256 over the canonical encoding, lower-case hexadecimal.
    #[must_use]
    pub fn hash(&self) -> String {
        crate::canonical::hash(&serde_json::to_value(self).unwrap_or(Value::Null))
    }

    /// The retry policy that holds at a step: its own, else its action's. `None` for steps that call nothing.
    #[must_use]
    pub fn retry_of<'p>(&'p self, step: &'p Step) -> Option<&'p RetryPolicy> {
        let called = step.called()?;
        let of_action = || self.policies.get(called.action).map(|policy| &policy.retry);
        called.retry.or_else(of_action)
    }

    /// Every step, those that hold others before those in them.
    #[must_use]
    pub fn all_steps(&self) -> Vec<&Step> {
        let mut found = Vec::new();
        let mut open: Vec<&[Step]> = vec![&self.steps];
        while let Some(list) = open.pop() {
            for step in list {
                found.push(step);
                open.extend(step.lists());
            }
        }
        found
    }
}

/// Identity of a module.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ModuleRef {
    /// The module's id.
    pub id: String,
    /// The module's version, from 1.
    pub version: u32,
}

/// SHA-256, lower-case hexadecimal, over canonical encodings (the source as it stands).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hashes {
    /// Of the source text.
    pub source: String,
    /// Of the manifest.
    pub manifest: String,
    /// Of the catalog that names were bound against.
    pub catalog: String,
}

/// The used part of a module: `action/loadItem` → semantic hash (labels and descriptions left out).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Footprint {
    /// The module's id; versions may differ.
    pub module: String,
    /// `action/NAME`, `input/TYPE` or `trigger/KIND` → hash.
    pub uses: BTreeMap<String, String>,
}

impl Footprint {
    /// Lower-case hexadecimal SHA-256: what run rows carry and claims name.
    #[must_use]
    pub fn hash(&self) -> String {
        crate::canonical::hash(&serde_json::to_value(self).unwrap_or(Value::Null))
    }

    /// Whether a module that offers `offered` can run what needs this.
    #[must_use]
    pub fn is_contained_in(&self, offered: &Self) -> bool {
        self.missing_in(offered).is_empty()
    }

    /// What `offered` lacks: for `explain` and health.
    #[must_use]
    pub fn missing_in(&self, offered: &Self) -> Vec<String> {
        if self.module != offered.module {
            return vec![format!("module `{}`", self.module)];
        }
        let lacks = |(name, hash): &(&String, &String)| offered.uses.get(*name) != Some(*hash);
        self.uses.iter().filter(lacks).map(|(name, _)| name.clone()).collect()
    }
}

/// What the kernel must know about an action to run it safely.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionPolicy {
    /// What it promises.
    pub class: EffectClass,
    /// When a failed attempt is tried again.
    pub retry: RetryPolicy,
    /// How long `NotFound` of a reconcile proves nothing, from the mark on. Ambiguous actions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_after: Option<Micros>,
    /// The output's JSON Schema: kept for what an operator supplies. Absent for pure actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// When a failed attempt is tried again. The defaults are the kernel's release backoff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Executions in a row that may end badly, 1 to 100.
    pub attempts: u32,
    /// The first delay.
    pub first: Micros,
    /// What each delay is multiplied by, at least 1.
    pub factor: f64,
    /// No delay is longer.
    pub max: Micros,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: crate::RUN_MAX_CONSECUTIVE_FAILURES,
            first: Micros::from_secs(5),
            factor: 2.0,
            max: Micros::from_secs(300),
        }
    }
}

/// A declared input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// What values it takes.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// A run without it is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// What it is when nothing was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The built-in input types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputType {
    /// A string.
    Text,
    /// Any number.
    Number,
    /// A whole number of 64 bits.
    Integer,
    /// True or false.
    Bool,
    /// An RFC 3339 instant.
    Time,
    /// A list of anything.
    List,
    /// An object of anything.
    Object,
}

impl InputType {
    /// Every built-in type.
    pub const ALL: &'static [Self] = &[
        Self::Text,
        Self::Number,
        Self::Integer,
        Self::Bool,
        Self::Time,
        Self::List,
        Self::Object,
    ];

    /// As authors write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Bool => "bool",
            Self::Time => "time",
            Self::List => "list",
            Self::Object => "object",
        }
    }

    /// Whether a value is of this type.
    #[must_use]
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Bool => value.is_boolean(),
            Self::Time => {
                value.as_str().is_some_and(|text| text.parse::<crate::Timestamp>().is_ok())
            }
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// What connects an event type to the inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerPlan {
    /// The event type that starts runs.
    pub event: String,
    /// Input name → value over `trigger.*` and `now()`.
    pub with: BTreeMap<String, Template>,
    /// Of a built-in schedule, when its events occur; its key is then the author's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<SchedulePlan>,
}

/// When a schedule is due. Normalised: equal schedules read the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SchedulePlan {
    /// Five fields.
    pub cron: String,
    /// A zone of the IANA database; absent is UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

/// Limits that hold while a plan runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanLimits {
    /// Items of one `forEach`.
    pub loop_items: u32,
}

/// One step of the authored source, in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What it does.
    #[serde(flatten)]
    pub kind: StepKind,
    /// The name its output is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save_as: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Where it stands in the source, from 1.
    pub line: u32,
}

/// What a step that calls an action says beside the config.
struct Called<'s> {
    action: &'s str,
    config: &'s Template,
    retry: Option<&'s RetryPolicy>,
    catch: Option<&'s [Step]>,
}

impl Step {
    /// The name of the action that it calls; `None` for a built-in step.
    #[must_use]
    pub fn action(&self) -> Option<&str> {
        Some(self.called()?.action)
    }

    /// The action that it calls, or the word of a built-in step.
    #[must_use]
    pub fn does(&self) -> &str {
        match &self.kind {
            StepKind::Action { action, .. } => action,
            StepKind::If { .. } => "if",
            StepKind::Switch { .. } => "switch",
            StepKind::ForEach { .. } => "forEach",
            StepKind::SetVariable { .. } => "setVariable",
            StepKind::Succeed { .. } => "succeed",
            StepKind::Fail { .. } => "fail",
            StepKind::Delay(_) => "delay",
            StepKind::WaitFor { .. } => "waitFor",
            StepKind::RunWorkflow { .. } => "runWorkflow",
            StepKind::RunWorkflows { .. } => "runWorkflows",
        }
    }

    /// What runs when its action failed for good, if the author gave any.
    #[must_use]
    pub fn catch(&self) -> Option<&[Self]> {
        self.called()?.catch
    }

    /// The lists of steps that it holds.
    fn lists(&self) -> Vec<&[Self]> {
        match &self.kind {
            StepKind::Action { catch, .. } => catch.as_deref().into_iter().collect(),
            StepKind::If { then, otherwise, .. } => {
                [then.as_slice()].into_iter().chain(otherwise.as_deref()).collect()
            }
            StepKind::Switch { cases, default, .. } => {
                let cases = cases.iter().map(|case| case.steps.as_slice());
                cases.chain(default.as_deref()).collect()
            }
            StepKind::ForEach { body, .. } => vec![body],
            StepKind::SetVariable { .. }
            | StepKind::Succeed { .. }
            | StepKind::Fail { .. }
            | StepKind::Delay(_)
            | StepKind::WaitFor { .. }
            | StepKind::RunWorkflow { .. }
            | StepKind::RunWorkflows { .. } => Vec::new(),
        }
    }

    /// The config of the action that it calls, as it is written.
    pub(crate) fn config(&self) -> Option<&Template> {
        self.called().map(|called| called.config)
    }

    fn called(&self) -> Option<Called<'_>> {
        match &self.kind {
            StepKind::Action { action, config, timeout: _, retry, catch } => {
                Some(Called { action, config, retry: retry.as_ref(), catch: catch.as_deref() })
            }
            StepKind::If { .. }
            | StepKind::Switch { .. }
            | StepKind::ForEach { .. }
            | StepKind::SetVariable { .. }
            | StepKind::Succeed { .. }
            | StepKind::Fail { .. }
            | StepKind::Delay(_)
            | StepKind::WaitFor { .. }
            | StepKind::RunWorkflow { .. }
            | StepKind::RunWorkflows { .. } => None,
        }
    }
}

/// What a step does. Closed on purpose; the stored form only ever grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepKind {
    /// Calls an action of the module.
    #[serde(rename_all = "camelCase")]
    Action {
        /// Its name.
        action: String,
        /// An object.
        config: Template,
        /// How long one execution of `run` may take.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<Micros>,
        /// In place of the action's own policy, never with more attempts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<RetryPolicy>,
        /// What runs when the action failed for good. Absent or not empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        catch: Option<Vec<Step>>,
    },
    /// `if`
    If {
        /// Must yield a bool.
        condition: Expr,
        /// Never empty.
        then: Vec<Step>,
        /// Absent or not empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        otherwise: Option<Vec<Step>>,
    },
    /// `switch`
    Switch {
        /// What is compared.
        on: Template,
        /// The first that is structurally equal wins.
        cases: Vec<Case>,
        /// Absent or not empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<Vec<Step>>,
    },
    /// `forEach`
    #[serde(rename_all = "camelCase")]
    ForEach {
        /// Must yield a list.
        over: Template,
        /// The name of the current item.
        item: String,
        /// Never empty.
        body: Vec<Step>,
    },
    /// `setVariable`
    SetVariable {
        /// The name it binds.
        name: String,
        /// Its value.
        value: Template,
    },
    /// `succeed`: ends the run.
    Succeed {
        /// A sentence for people.
        message: Template,
    },
    /// `fail`: ends the run.
    Fail {
        /// A sentence for people.
        message: Template,
        /// [`Code::FAILED`] if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
    },
    /// `delay`
    Delay(Delay),
    /// `waitFor`
    #[serde(rename_all = "camelCase")]
    WaitFor {
        /// What sort of signal.
        signal: Template,
        /// Which one.
        key: Template,
        /// Its deadline, from the first park on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<Micros>,
    },
    /// `runWorkflow`: one child, whose result is the outcome.
    RunWorkflow {
        /// The key of a workflow in the same scope.
        workflow: Template,
        /// An object.
        inputs: Template,
    },
    /// `runWorkflows`: a child for each item of a list; their results in order are the outcome.
    RunWorkflows {
        /// The key of a workflow in the same scope.
        workflow: Template,
        /// Must yield a list.
        each: Template,
        /// The name of the current item in `workflow` and `inputs`.
        item: String,
        /// An object.
        inputs: Template,
        /// At most so many children are unfinished at once; absent is all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parallel: Option<u32>,
    },
}

/// One case of a `switch`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// What the value is compared with.
    pub when: Template,
    /// Never empty.
    #[serde(rename = "do")]
    pub steps: Vec<Step>,
}

/// How long a `delay` parks the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Delay {
    /// This long, from the first park on.
    For(Micros),
    /// Until an instant; one in the past does not park.
    Until(Template),
}
