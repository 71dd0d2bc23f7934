//! Runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use surefoot_kernel_core::{
    App, Bill, BudgetLine, EffectClass, EffectKey, EffectState, EventId, EventRow, Invocation,
    Mode, Phase, Run, RunDetail, RunId, RunRow, RunState, Scope, Shown, ShownError, StepKey,
    StepState, TraceContext, WorkflowKey,
};

use super::At;
use crate::schema;

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunsView {
    /// Newest first.
    pub runs: Vec<RunView>,
    /// Where the next page begins; opaque.
    pub next: Option<String>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunView {
    /// Its id.
    #[schemars(with = "schema::RunId")]
    pub id: RunId,
    /// Whose.
    #[schemars(with = "String")]
    pub app: App,
    /// Where.
    #[schemars(with = "String")]
    pub scope: Scope,
    /// Of which workflow.
    #[schemars(with = "String")]
    pub workflow: WorkflowKey,
    /// Of which of its revisions.
    pub version: u64,
    /// Whether effects happen.
    #[schemars(with = "schema::Mode")]
    pub mode: Mode,
    /// Where it stands.
    #[schemars(with = "schema::RunState")]
    pub state: RunState,
    /// What verbs are decided on.
    pub revision: u64,
    /// Claims so far.
    pub attempt: u64,
    /// Store time.
    pub created_at: At,
    /// The first claim.
    pub started_at: Option<At>,
    /// The end.
    pub finished_at: Option<At>,
    /// Why it failed, or needs a person.
    #[schemars(with = "Option<schema::ShownError>")]
    pub error: Option<ShownError>,
    /// The run that created it.
    #[schemars(with = "Option<schema::RunId>")]
    pub parent: Option<RunId>,
}

impl RunView {
    pub(crate) fn of(run: &Run, version: u64) -> Self {
        let origin = &run.origin;
        let error = match &run.phase {
            Phase::Failed { error, .. } => Some(error),
            Phase::NeedsAttention(attention) => Some(&attention.error),
            Phase::Queued { .. }
            | Phase::Running { .. }
            | Phase::Waiting(_)
            | Phase::Succeeded { .. }
            | Phase::Canceled { .. } => None,
        };
        Self {
            id: run.id,
            app: origin.app.clone(),
            scope: origin.scope.clone(),
            workflow: origin.workflow.clone(),
            version,
            mode: origin.mode,
            state: run.state(),
            revision: run.revision,
            attempt: run.attempt,
            created_at: At(origin.created_at),
            started_at: run.started_at.map(At),
            finished_at: run.ended_at.map(At),
            error: error.map(ShownError::from),
            parent: origin.parent.as_ref().map(|parent| parent.run),
        }
    }
}

impl From<&RunRow> for RunView {
    fn from(row: &RunRow) -> Self {
        Self::of(&row.run, row.version_revision)
    }
}

/// One run in detail.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ShowView {
    /// What a list shows of it.
    #[serde(flatten)]
    pub run: RunView,
    /// By name, once step zero has computed them.
    pub inputs: Value,
    /// Output of the last top-level step.
    pub result: Value,
    /// A sentence for people.
    pub result_message: Option<String>,
    /// What started it.
    pub event: Option<EventSummary>,
    /// Where the event that started its tree belongs in a trace, as W3C headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::TraceContext>")]
    pub trace: Option<TraceContext>,
    /// Per dimension of its effect budget: used and limit, counted over its whole tree of runs.
    #[schemars(with = "Vec<schema::BudgetLine>")]
    pub budget: Vec<BudgetLine>,
    /// The steps that it has come to, in order.
    pub steps: Vec<StepView>,
    /// Steps that are left out, since there are too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub steps_omitted: u64,
    /// The runs that it created, newest first, at most 100.
    pub children: Vec<RunView>,
    /// How many it created.
    #[serde(skip_serializing_if = "is_zero")]
    pub children_total: u64,
    /// All of them by state; states in which none is are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub children_by_state: BTreeMap<&'static str, u64>,
    /// Where the next page of a list of its children begins; opaque.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children_next: Option<String>,
    /// Why plan or journal cannot be read, if so: then `steps` says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What started a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EventSummary {
    /// Its id.
    #[schemars(with = "schema::EventId")]
    pub id: EventId,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Its dedupe key.
    pub key: Option<String>,
    /// Its tags, by which its runs are found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The trigger of the workflow that took it; absent where the event's data are the inputs.
    pub trigger: Option<String>,
    /// When it happened.
    pub occurred_at: At,
    /// The run's own copy of its data and context; `"expired"` once emptied.
    pub payload: Value,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StepView {
    /// Its key.
    #[schemars(with = "String")]
    pub key: StepKey,
    /// Its action, or the word of a built-in step.
    pub action: String,
    /// What the action promises.
    #[schemars(with = "Option<schema::EffectClass>")]
    pub class: Option<EffectClass>,
    /// Where it stands.
    #[schemars(with = "schema::StepState")]
    pub state: StepState,
    /// What became of its effect.
    #[schemars(with = "Option<schema::EffectState>")]
    pub effect_state: Option<EffectState>,
    /// The same for every attempt.
    #[schemars(with = "Option<String>")]
    pub effect_key: Option<EffectKey>,
    /// Claims of the run since it came to this step; of the open step only.
    pub attempt: Option<u32>,
    /// When the run came to it.
    pub started_at: Option<At>,
    /// When its outcome was recorded.
    pub finished_at: Option<At>,
    /// What went wrong.
    #[schemars(with = "Option<schema::ShownError>")]
    pub error: Option<ShownError>,
}

impl From<Shown> for StepView {
    fn from(shown: Shown) -> Self {
        Self {
            key: shown.key,
            action: shown.action,
            class: shown.class,
            state: shown.state,
            effect_state: shown.effect_state,
            effect_key: shown.effect_key,
            attempt: shown.attempt,
            started_at: shown.started_at.map(At),
            finished_at: shown.finished_at.map(At),
            error: shown.error,
        }
    }
}

/// What started the run.
pub(crate) fn event_summary(detail: &RunDetail) -> Option<EventSummary> {
    let origin = &detail.run.origin;
    let row: Option<&EventRow> = detail.event.as_ref();
    let Invocation { trigger, context, .. } = &detail.invocation;
    Some(EventSummary {
        id: origin.event?,
        kind: row.map(|row| row.kind.clone()),
        key: row.and_then(|row| row.dedupe_key.clone()),
        tags: row.map(|row| row.tags.clone()).unwrap_or_default(),
        trigger: origin.trigger.clone(),
        occurred_at: At(origin.occurred_at),
        // The run has a copy of its own; what the event held is gone all the same.
        payload: if row.is_some_and(|row| row.is_expired) {
            json!("expired")
        } else {
            json!({ "data": trigger, "context": context })
        },
    })
}

/// A dry run, and its bill once it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BillView {
    /// The dry run.
    pub run: RunView,
    /// What an execution would do; absent while the dry run is not over, or where it failed.
    #[schemars(with = "Option<schema::Bill>")]
    pub bill: Option<Bill>,
    /// The caps of its version; nothing is used by a dry run.
    #[schemars(with = "Vec<schema::BudgetLine>")]
    pub limits: Vec<BudgetLine>,
}

/// What a verb did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Done {
    /// In a word.
    pub outcome: Outcome,
    /// The run as it is now.
    pub run: RunView,
}

/// What a verb did, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// What was asked.
    Done,
    /// The run is canceled.
    Canceled,
    /// The run had ended before: nothing was changed.
    AlreadyEnded,
    /// Its worker ends it as soon as it sees the request.
    WillCancel,
    /// It ends once its effect is explained.
    WillCancelAfterEffect,
}

impl Outcome {
    /// The word used in views.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Canceled => "canceled",
            Self::AlreadyEnded => "already_ended",
            Self::WillCancel => "will_cancel",
            Self::WillCancelAfterEffect => "will_cancel_after_effect",
        }
    }
}

/// What became of each run of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerdictsView {
    /// In the order in which they were given: children before their parents, else the newest run first.
    pub verdicts: Vec<VerdictView>,
    /// Where the next page begins; opaque.
    pub next: Option<String>,
}

/// What became of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerdictView {
    /// The run.
    #[schemars(with = "schema::RunId")]
    pub run: RunId,
    /// Where it stands now.
    #[schemars(with = "schema::RunState")]
    pub state: RunState,
    /// Why the verb was refused, if it was.
    pub refused: Option<String>,
}

/// What became durable of a run since the last look.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WatchView {
    /// The run as it is now.
    pub run: RunView,
    /// In order.
    pub steps: Vec<WatchedStep>,
    /// Where the next look begins.
    pub next: u64,
}

/// One thing that became durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WatchedStep {
    /// Store time.
    pub at: At,
    /// The step.
    #[schemars(with = "String")]
    pub step: StepKey,
    /// In words.
    pub what: &'static str,
    /// What is known of its effect, if it has one.
    #[schemars(with = "Option<schema::EffectState>")]
    pub effect: Option<EffectState>,
    /// What went wrong.
    pub message: Option<String>,
}
