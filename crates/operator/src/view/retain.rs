//! What ends.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use surefoot_kernel_core::{
    AuditRow, Deleted, EffectState, EventId, OpenEffectRow, Prunable, RunId, Scope, StepKey,
    VersionId, WorkflowKey, payload,
};

use super::At;
use crate::schema;

/// What became of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SwitchedView {
    /// Of which workflow.
    #[schemars(with = "String")]
    pub workflow: WorkflowKey,
    /// On or off.
    pub enabled: bool,
    /// The activations that changed; those that stood so already are left out.
    pub changed: Vec<String>,
}

/// What became of a redriven event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RedrivenView {
    /// Which.
    #[schemars(with = "schema::EventId")]
    pub event: EventId,
    /// Runs that its dispatch will create.
    pub deliveries: u32,
    /// Workflows that are gone, whose deliveries were dropped.
    #[schemars(with = "Vec<String>")]
    pub dropped: Vec<WorkflowKey>,
}

/// What was pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PrunedView {
    /// Runs.
    pub runs: u64,
    /// Spent signals.
    pub signals: u64,
    /// Payloads of unmatched events.
    pub events: u64,
    /// Audit rows.
    pub audit: u64,
}

impl PrunedView {
    pub(crate) fn count(&mut self, what: &Prunable, deleted: u32) {
        let counter = match what {
            Prunable::Runs { .. } => &mut self.runs,
            Prunable::SpentSignals => &mut self.signals,
            Prunable::UnmatchedPayloads => &mut self.events,
            Prunable::Audit => &mut self.audit,
        };
        *counter += u64::from(deleted);
    }
}

/// How far a deletion has come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct DeletionView {
    /// Whether nothing is left.
    pub done: bool,
    /// Runs that were canceled, or asked to end.
    pub canceled: u64,
    /// Events.
    pub events: u64,
    /// Runs.
    pub runs: u64,
    /// Signals.
    pub signals: u64,
    /// Workflows.
    pub workflows: u64,
    /// Effects that hold it up, at most 100.
    pub unexplained: Vec<OpenEffectView>,
    /// Runs that are still on their way to their end.
    pub ending: u64,
}

impl DeletionView {
    pub(crate) fn add(&mut self, pass: &Deleted) {
        self.canceled += u64::from(pass.canceled);
        self.events += u64::from(pass.events);
        self.runs += u64::from(pass.runs);
        self.signals += u64::from(pass.signals);
        self.workflows += u64::from(pass.workflows);
        self.unexplained = pass.unexplained.iter().map(OpenEffectView::from).collect();
        self.ending = pass.ending;
        self.done = pass.done;
    }

    /// Whether it waits for a person or for a worker.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.unexplained.is_empty() || self.ending > 0
    }
}

/// An effect that nobody can explain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OpenEffectView {
    /// The run.
    #[schemars(with = "schema::RunId")]
    pub run: RunId,
    /// The step.
    #[schemars(with = "String")]
    pub step: StepKey,
    /// What is known.
    #[schemars(with = "schema::EffectState")]
    pub state: EffectState,
}

impl From<&OpenEffectRow> for OpenEffectView {
    fn from(row: &OpenEffectRow) -> Self {
        Self { run: row.run, step: row.step.clone(), state: row.state }
    }
}

/// Who did what.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AuditView {
    /// Newest first.
    pub audit: Vec<AuditRowView>,
}

/// One row of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AuditRowView {
    /// Store time.
    pub at: At,
    /// Who.
    pub actor: String,
    /// What.
    pub verb: String,
    /// Why.
    pub reason: String,
    /// Where; empty for what concerns the whole app.
    #[schemars(with = "String")]
    pub scope: Scope,
    /// To which run.
    #[schemars(with = "Option<schema::RunId>")]
    pub run: Option<RunId>,
    /// To which version.
    #[schemars(with = "Option<schema::VersionId>")]
    pub version: Option<VersionId>,
    /// The number of that version in its workflow.
    pub revision: Option<u64>,
    /// Of which workflow, where that is known.
    #[schemars(with = "Option<String>")]
    pub workflow: Option<WorkflowKey>,
    /// To which step.
    #[schemars(with = "Option<String>")]
    pub step: Option<StepKey>,
    /// What was said of the step's effect: `succeeded`, `failed`, `not_performed`.
    pub verdict: Option<String>,
    /// What the verb was given, and what it did.
    pub details: Value,
}

impl AuditRowView {
    /// `of` is the workflow of the row's version, and the version's number in it.
    pub(crate) fn of(row: AuditRow, of: Option<(WorkflowKey, u64)>) -> Self {
        let details = payload::from_stored(&row.details);
        let details: Value = details.unwrap_or(Value::String(row.details));
        let text = |name: &str| details.get(name).and_then(Value::as_str);
        Self {
            revision: of.as_ref().map(|(_, revision)| *revision),
            workflow: of.map(|(key, _)| key).or_else(|| text("workflow").map(WorkflowKey::from)),
            step: text("step").map(StepKey::from),
            verdict: text("verdict").map(str::to_owned),
            at: At(row.at),
            actor: row.actor,
            verb: row.verb,
            reason: row.reason,
            scope: row.scope,
            run: row.run,
            version: row.version,
            details,
        }
    }
}
