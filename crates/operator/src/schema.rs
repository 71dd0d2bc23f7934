//! The shapes of what the core writes into views, for descriptions of an interface (`JsonSchema`). The core itself
//! knows no schemas; that each shape is what is written is tested where answers are checked against them.

#![expect(dead_code, reason = "shapes are described, not made")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use surefoot_kernel_core as core;

use crate::At;

macro_rules! ids {
    ($($name:ident, $about:literal);* $(;)?) => {$(
        #[doc = $about]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let prefix = core::$name::PREFIX;
                json_schema!({
                    "description": $about,
                    "type": "string",
                    "pattern": format!("^{prefix}_[0-9a-f]{{32}}$"),
                    "examples": [format!("{prefix}_0190a1b2c3d47e5f8a9b0c1d2e3f4a5b")],
                })
            }
        }
    )*};
}

ids! {
    RunId, "The id of a run.";
    EventId, "The id of an event.";
    VersionId, "The id of a version.";
    SessionId, "The id of a worker session.";
}

macro_rules! words {
    ($($name:ident, $about:literal, $all:expr);* $(;)?) => {$(
        #[doc = $about]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let all: Vec<&str> = $all.iter().map(|one| one.as_str()).collect();
                json_schema!({ "description": $about, "type": "string", "enum": all })
            }
        }
    )*};
}

words! {
    RunState, "Where a run stands.", core::RunState::ALL;
    EffectState, "What is known of an effect.", core::EffectState::ALL;
    EffectClass, "What an action promises.", [
        core::EffectClass::Pure,
        core::EffectClass::Transactional,
        core::EffectClass::Idempotent,
        core::EffectClass::Ambiguous,
    ];
    StepState, "Where a step stands.", [
        core::StepState::Running,
        core::StepState::Completed,
        core::StepState::Waiting,
        core::StepState::Failed,
        core::StepState::NeedsAttention,
        core::StepState::Terminal,
        core::StepState::Canceled,
        core::StepState::NotReached,
    ];
    Mode, "Whether effects happen.", [core::Mode::Execute, core::Mode::DryRun];
    EventStatus, "Where an event stands.", core::EventStatus::ALL;
}

/// The sorts of reasons.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum ReasonKind {
    /// A worker holds it: it moves.
    Held,
    /// Its worker's lease ran out.
    LeaseExpired,
    /// Ready, and no worker has taken it yet.
    Due,
    /// An execution ended badly; the next one comes later.
    Backoff,
    /// A worker has to ask the provider what became of an effect.
    ToReconcile,
    /// It waits for a signal.
    Signal,
    /// It waits for its children.
    Children,
    /// It is held back until a sibling ends.
    HeldBack,
    /// It waits for an instant.
    Deadline,
    /// No live worker can run it.
    MissingModule,
    /// No worker lives.
    NoWorker,
    /// Cancel was requested and is not honoured yet.
    CancelRequested,
    /// A worker that takes it will end it, or call for a person.
    WouldStop,
    /// It waits for a person.
    Person,
    /// It was given up, and nobody knows what became of its effect.
    GivenUp,
    /// Its plan or journal cannot be read.
    Unreadable,
    /// It has ended.
    Ended,
}

/// A number that is counted exactly, in millionths.
#[derive(Debug, JsonSchema)]
#[schemars(transparent)]
pub struct Amount(#[schemars(range(min = 0))] f64);

/// Amounts by dimension.
#[derive(Debug, JsonSchema)]
#[schemars(transparent)]
pub struct Amounts(BTreeMap<String, Amount>);

/// Code and sentence of what went wrong.
#[derive(Debug, JsonSchema)]
pub struct ShownError {
    /// Stable.
    code: String,
    /// For people.
    message: String,
}

/// One dimension of an effect budget.
#[derive(Debug, JsonSchema)]
pub struct BudgetLine {
    /// Its name.
    dimension: String,
    /// Charged so far, by the whole tree of runs.
    used: Amount,
    /// The cap; null where it is only counted.
    limit: Option<Amount>,
}

/// Where something belongs in a trace, as W3C headers.
#[derive(Debug, JsonSchema)]
pub struct TraceContext {
    /// The header `traceparent`.
    traceparent: String,
    /// The header `tracestate`.
    #[schemars(skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

/// What a version would do with an event.
#[derive(Debug, JsonSchema)]
pub struct Bill {
    /// What keeps it from being the whole truth; null where nothing does.
    code: Option<String>,
    /// Every effect, in the order of the steps.
    effects: Vec<PlannedEffect>,
    /// How many effects of each class.
    by_class: BTreeMap<String, u64>,
    /// What is charged, by dimension.
    costs: Vec<BillCost>,
    /// Whether the cost of every effect is known.
    is_cost_complete: bool,
    /// Everything that a person should know, in the order of the steps.
    issues: Vec<BillIssue>,
    /// The step at which the run would end for sure, ahead of its last one.
    ends: Option<BillEnd>,
}

/// One effect of a bill.
#[derive(Debug, JsonSchema)]
pub struct PlannedEffect {
    /// Its step.
    step: String,
    /// Its action.
    action: String,
    /// What the action promises.
    class: EffectClass,
    /// What would happen; null where the action could not be asked.
    summary: Option<String>,
    /// What it would charge.
    cost: Amounts,
    /// Whether an execution comes to it for sure, once.
    is_sure: bool,
}

/// One dimension of a bill.
#[derive(Debug, JsonSchema)]
pub struct BillCost {
    /// Its name.
    dimension: String,
    /// What the sure effects charge.
    sure: Amount,
    /// What all effects charge together.
    all: Amount,
}

/// Something that a person should know.
#[derive(Debug, JsonSchema)]
pub struct BillIssue {
    /// Where.
    step: String,
    /// Which gap; null for an action's own note.
    code: Option<String>,
    /// For people.
    message: String,
}

/// Where a run would end for sure.
#[derive(Debug, JsonSchema)]
pub struct BillEnd {
    /// The step.
    step: String,
    /// With which code it would fail; null where it would succeed.
    code: Option<String>,
    /// For people.
    message: Option<String>,
}

/// What differs between two plans.
#[derive(Debug, JsonSchema)]
pub struct PlanDiff {
    /// In the order of the later plan; removed steps come last.
    steps: Vec<StepDiff>,
    /// Actions whose class, policy or schema differ, or that only one of them uses.
    actions: Vec<ActionDiff>,
    /// Inputs, triggers, bindings, limits and the module.
    other: Vec<OtherDiff>,
}

/// What happened to something.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Change {
    /// Only the later plan has it.
    Added,
    /// Only the earlier plan has it.
    Removed,
    /// Both have it, not the same.
    Changed,
    /// Both have the same, in another order or inside another step.
    Moved,
}

/// A step that differs.
#[derive(Debug, JsonSchema)]
pub struct StepDiff {
    /// How.
    change: Change,
    /// Its action, or what kind of control step it is.
    does: String,
    /// Its place in the earlier plan.
    before: Option<String>,
    /// Its place in the later plan.
    after: Option<String>,
    /// What of it differs.
    fields: Vec<String>,
}

/// An action that differs.
#[derive(Debug, JsonSchema)]
pub struct ActionDiff {
    /// Its name.
    action: String,
    /// In the earlier plan.
    before: Option<ActionUse>,
    /// In the later plan.
    after: Option<ActionUse>,
}

/// How a plan uses an action.
#[derive(Debug, JsonSchema)]
pub struct ActionUse {
    /// What it promises.
    class: EffectClass,
    /// How many steps call it.
    steps: u64,
    /// Executions in a row that may end badly.
    attempts: u32,
    /// Microseconds for which `NotFound` of a reconcile proves nothing.
    settle_after: Option<i64>,
    /// Differs where the schemas of its config or output do.
    hash: Option<String>,
}

/// Something else that differs.
#[derive(Debug, JsonSchema)]
pub struct OtherDiff {
    /// What.
    what: String,
    /// How.
    change: Change,
}

/// How bad a finding is.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Severity {
    /// No plan comes of it.
    Error,
    /// A plan comes of it that hardly does what its author meant.
    Warning,
    /// Good to know.
    Note,
}

/// One thing that is wrong with a source.
#[derive(Debug, JsonSchema)]
pub struct Finding {
    /// Stable, in capitals.
    code: String,
    /// How bad.
    severity: Severity,
    /// What, in a sentence.
    message: String,
    /// Where in the tree; empty for the whole file.
    path: String,
    /// The first line, from 1.
    line: u64,
    /// The first column, from 1, in characters.
    column: u64,
    /// The last line, from 1.
    end_line: u64,
    /// The column after the last character, from 1, in characters.
    end_column: u64,
    /// What cures it.
    help: Option<String>,
}

/// One run, explained.
#[derive(Debug, JsonSchema)]
pub struct Explanation {
    /// Which run.
    run: RunId,
    /// Where it stands.
    state: RunState,
    /// Whether effects happen.
    mode: Mode,
    /// On what every verb has to be decided: the value of `If-Match`.
    revision: u64,
    /// The store's time of the reading.
    read_at: At,
    /// One sentence.
    headline: String,
    /// Why it does not move, or what moves it.
    why_not_moving: Vec<Reason>,
    /// Every step of the plan; loops by iteration.
    steps: Vec<ShownStep>,
    /// Steps that are left out of `steps`, since there are too many.
    #[schemars(skip_serializing_if = "is_zero")]
    steps_omitted: u64,
    /// What happened outside the journal.
    effects: EffectNotes,
    /// The effect budget of its tree of runs, by dimension.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    budget: Vec<BudgetLine>,
    /// What a worker that takes the run would do again.
    would_repeat: Vec<Repeat>,
    /// What a person may do now.
    legal_actions: Vec<LegalAction>,
}

/// One reason why a run stands where it stands.
#[derive(Debug, JsonSchema)]
pub struct Reason {
    /// What sort of reason.
    kind: ReasonKind,
    /// A sentence.
    text: String,
    /// Since when.
    since: Option<At>,
    /// When it ends by itself, if it does.
    until: Option<At>,
}

/// One step of a run, or one step of the plan that the run has not come to.
#[derive(Debug, JsonSchema)]
pub struct ShownStep {
    /// Its key; of a step inside a loop that was not begun, its place in the plan.
    key: String,
    /// The action, or the word of a built-in step.
    action: String,
    /// What the action promises; built-in steps have none.
    class: Option<EffectClass>,
    /// The author's label.
    label: Option<String>,
    /// Where in the source, from 1.
    line: u32,
    /// Where it stands.
    state: StepState,
    /// Why it stands there, where that is not plain from the state.
    #[schemars(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// What became of its effect.
    effect_state: Option<EffectState>,
    /// The same for every attempt.
    effect_key: Option<String>,
    /// Claims of the run since it came to this step; of the open step only.
    attempt: Option<u32>,
    /// When the run came to it.
    started_at: Option<At>,
    /// When its outcome was recorded.
    finished_at: Option<At>,
    /// What went wrong.
    error: Option<ShownError>,
    /// Of a loop, how far it is.
    #[schemars(skip_serializing_if = "Option::is_none")]
    iterations: Option<Iterations>,
}

/// How far a loop is.
#[derive(Debug, JsonSchema)]
pub struct Iterations {
    /// Items.
    total: u64,
    /// Iterations that are over.
    completed: u64,
    /// The first iteration whose steps are listed.
    listed_from: u64,
}

/// The effects of a run, by what is known of them.
#[derive(Debug, JsonSchema)]
pub struct EffectNotes {
    /// Recorded: never done again.
    happened: Vec<EffectNote>,
    /// Not recorded, and begun or possibly begun.
    may_have_happened: Vec<EffectNote>,
    /// No worker has come to the step.
    not_started: Vec<EffectNote>,
}

/// One effect, or several of one place in a loop.
#[derive(Debug, JsonSchema)]
pub struct EffectNote {
    /// The step; where `count` is over one, its place in the plan.
    step: String,
    /// Its action.
    action: String,
    /// What the action promises.
    class: EffectClass,
    /// The same for every attempt.
    effect_key: Option<String>,
    /// How many iterations it stands for; one where it is absent.
    #[schemars(skip_serializing_if = "is_one")]
    count: u64,
    /// On what this rests.
    why: String,
}

/// What a worker that takes the run would do again.
#[derive(Debug, JsonSchema)]
pub struct Repeat {
    /// The step.
    step: String,
    /// Its action.
    action: String,
    /// What the action promises.
    class: EffectClass,
    /// The same for every attempt.
    effect_key: Option<String>,
    /// Whether the action's `run` would be called again.
    is_called_again: bool,
    /// What would be done, a sentence.
    what: String,
}

/// One thing that a person may do now.
#[derive(Debug, JsonSchema)]
pub struct LegalAction {
    /// The operator's verb.
    verb: String,
    /// What to type on the command line.
    command: String,
    /// When it is the right thing.
    why: String,
}

/// One step of a plan, in its place.
#[derive(Debug, JsonSchema)]
pub struct PlanStep {
    /// Its place; a step's key without the iterations.
    place: String,
    /// The action, or the word of a built-in step.
    action: String,
    /// What the action promises; built-in steps have none.
    class: Option<EffectClass>,
    /// The author's label.
    label: Option<String>,
    /// The name its output is bound to.
    save_as: Option<String>,
    /// Where in the source, from 1.
    line: u32,
    /// What is inside of it.
    branches: Vec<PlanBranch>,
}

/// A list of steps inside a step.
#[derive(Debug, JsonSchema)]
pub struct PlanBranch {
    /// As authors know it: `then`, `else`, `case 1`, `default`, `catch`, `each`.
    name: String,
    /// In order.
    steps: Vec<PlanStep>,
}
