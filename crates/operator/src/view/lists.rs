//! Everything that is listed beside runs.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use surefoot_kernel_core::{
    Amounts, EffectKey, EffectRow, EffectState, EventId, EventRow, RunId, RunState, Scope,
    SignalRow, StepKey, StoredVersion, VersionId, WorkflowKey, WorkflowRow,
};
use surefoot_language::Finding;

use super::{At, millis};
use crate::schema;

/// Effects that nobody can explain yet, or whose output is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EffectsView {
    /// Oldest first.
    pub effects: Vec<EffectView>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EffectView {
    /// The run.
    #[schemars(with = "schema::RunId")]
    pub run: RunId,
    /// The step.
    #[schemars(with = "String")]
    pub step: StepKey,
    /// Its action.
    pub action: String,
    /// What the provider knows it by.
    #[schemars(with = "String")]
    pub effect_key: EffectKey,
    /// What is known.
    #[schemars(with = "schema::EffectState")]
    pub state: EffectState,
    /// When the call was marked.
    pub since: At,
    /// How long ago.
    pub age_ms: i64,
    /// Where the run stands; for people.
    #[serde(skip)]
    pub run_state: RunState,
    /// Of which workflow; for people.
    #[serde(skip)]
    pub workflow: WorkflowKey,
}

impl From<&EffectRow> for EffectView {
    fn from(row: &EffectRow) -> Self {
        Self {
            run: row.run,
            step: row.effect.step.clone(),
            action: row.effect.action.clone(),
            effect_key: EffectKey::of(row.run, &row.effect.step),
            state: row.effect.state,
            since: At(row.effect.since),
            age_ms: millis(row.now.since(row.effect.since)),
            run_state: row.run_state,
            workflow: row.workflow.clone(),
        }
    }
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventsView {
    /// Newest first.
    pub events: Vec<EventView>,
    /// Where the next page begins; opaque.
    pub next: Option<String>,
}

/// An event in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventView {
    /// Its id.
    #[schemars(with = "schema::EventId")]
    pub id: EventId,
    /// Where.
    #[schemars(with = "String")]
    pub scope: Scope,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its dedupe key.
    pub key: Option<String>,
    /// Its tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// `pending`, `dispatched`, `unmatched`, `retrying` or `dead_lettered`.
    pub status: &'static str,
    /// How many activations matched.
    pub matched: u32,
    /// Failed dispatches.
    pub attempts: u32,
    /// The last failure.
    pub error: Option<String>,
    /// When it happened.
    pub occurred_at: At,
    /// When it was recorded.
    pub recorded_at: At,
    /// Its runs.
    #[schemars(with = "Vec<schema::RunId>")]
    pub runs: Vec<RunId>,
    /// Whether its payload was emptied.
    pub expired: bool,
}

impl From<&EventRow> for EventView {
    fn from(row: &EventRow) -> Self {
        Self {
            id: row.event,
            scope: row.scope.clone(),
            kind: row.kind.clone(),
            key: row.dedupe_key.clone(),
            tags: row.tags.clone(),
            status: row.status.as_str(),
            matched: row.matched,
            attempts: row.attempts,
            error: row.error.clone(),
            occurred_at: At(row.occurred_at),
            recorded_at: At(row.recorded_at),
            runs: row.runs.clone(),
            expired: row.is_expired,
        }
    }
}

/// Signals that no run has used.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SignalsView {
    /// Oldest first.
    pub signals: Vec<SignalView>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SignalView {
    /// Where; none is app-wide.
    #[schemars(with = "Option<String>")]
    pub scope: Option<Scope>,
    /// What sort.
    pub kind: String,
    /// Which one.
    pub key: String,
    /// Its data.
    pub data: Value,
    /// When it was recorded.
    pub recorded_at: At,
    /// How long ago.
    pub age_ms: i64,
}

impl From<&SignalRow> for SignalView {
    fn from(row: &SignalRow) -> Self {
        Self {
            scope: row.scope.clone(),
            kind: row.kind.clone(),
            key: row.key.clone(),
            data: row.data.clone(),
            recorded_at: At(row.recorded_at),
            age_ms: millis(row.now.since(row.recorded_at)),
        }
    }
}

/// The workflows of an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkflowsView {
    /// By scope and key.
    pub workflows: Vec<WorkflowView>,
}

/// A workflow in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkflowView {
    /// Where.
    #[schemars(with = "String")]
    pub scope: Scope,
    /// Its key.
    #[schemars(with = "String")]
    pub workflow: WorkflowKey,
    /// The live revision.
    pub active: Option<u64>,
    /// The newest revision.
    pub latest: u64,
    /// What starts it.
    pub activations: Vec<ActivationView>,
}

/// What starts a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ActivationView {
    /// Its key.
    pub key: String,
    /// The event type.
    pub event: String,
    /// Whether it is switched on.
    pub enabled: bool,
}

impl From<WorkflowRow> for WorkflowView {
    fn from(row: WorkflowRow) -> Self {
        let activations = row.activations.into_iter().map(|(key, event, enabled)| ActivationView {
            key,
            event,
            enabled,
        });
        Self {
            scope: row.scope,
            workflow: row.workflow,
            active: row.active,
            latest: row.latest,
            activations: activations.collect(),
        }
    }
}

/// The versions of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VersionsView {
    /// Newest first.
    pub versions: Vec<VersionView>,
}

/// A version in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VersionView {
    /// Its id.
    #[schemars(with = "schema::VersionId")]
    pub id: VersionId,
    /// From 1.
    pub revision: u64,
    /// Whether it is the live one.
    pub active: bool,
    /// Store time.
    pub created_at: At,
    /// Who.
    pub author: String,
    /// SHA-256 of the plan.
    pub plan_hash: String,
    /// The module that a worker must have.
    pub module: String,
    /// The caps of its effect budget, by dimension.
    #[schemars(with = "schema::Amounts")]
    pub budget: Amounts,
}

impl From<&StoredVersion> for VersionView {
    fn from(stored: &StoredVersion) -> Self {
        Self {
            id: stored.version,
            revision: stored.revision,
            active: stored.active,
            created_at: At(stored.created_at),
            author: stored.author.clone(),
            plan_hash: stored.plan_hash.clone(),
            module: stored.footprint.module.clone(),
            budget: stored.budget.clone(),
        }
    }
}

/// What was published or activated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublishedView {
    /// Which workflow.
    #[schemars(with = "String")]
    pub workflow: WorkflowKey,
    /// The version's id.
    #[schemars(with = "schema::VersionId")]
    pub id: VersionId,
    /// From 1, per workflow.
    pub revision: u64,
    /// Whether it is live now.
    pub active: bool,
    /// Warnings and notes on the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Finding>")]
    pub findings: Vec<Finding>,
}

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EmittedView {
    /// The event; the original one if the key existed.
    #[schemars(with = "schema::EventId")]
    pub event: EventId,
    /// Its runs so far.
    #[schemars(with = "Vec<schema::RunId>")]
    pub runs: Vec<RunId>,
    /// How many activations matched when it was recorded.
    pub matched: u32,
    /// Whether this call recorded it.
    pub new: bool,
    /// Whether its payload equals the recorded one's.
    pub same_payload: bool,
    /// Whether its tags equal the recorded ones: those of a repeat are not added.
    pub same_tags: bool,
    /// Of an event that was recorded before: those of its first runs that were pruned or deleted since. They are not
    /// created again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::RunId>")]
    pub gone: Vec<RunId>,
    /// Where nothing matched: which mistake that may be, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_nothing: Option<String>,
    /// What to type to mend that, where one command does. Words in angle brackets are to be filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// What became of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SignalSentView {
    /// Whether this call recorded it; the first one of a key stays.
    pub new: bool,
    /// The runs that it woke.
    #[schemars(with = "Vec<schema::RunId>")]
    pub woken: Vec<RunId>,
}
