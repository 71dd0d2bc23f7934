//! Parts of a run and of a version, page by page.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use surefoot_kernel_core::{Scope, WorkflowKey};

use super::{At, StepView, VersionView};

/// A page of the steps that a run has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StepsView {
    /// In order.
    pub steps: Vec<StepView>,
    /// How many there are.
    pub total: u64,
    /// Where the next page begins; opaque.
    pub next: Option<String>,
}

/// A page of a run's journal.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JournalView {
    /// In order.
    pub entries: Vec<JournalEntryView>,
    /// Where the next page begins; opaque.
    pub next: Option<String>,
}

/// What one commit recorded.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JournalEntryView {
    /// Facts before these.
    pub seq: u64,
    /// The writer's generation.
    pub generation: u64,
    /// Store time.
    pub at: At,
    /// In order, in the words of the journal. Values that the application's resolver gave are left out: they may be
    /// secrets.
    pub facts: Vec<Value>,
}

/// A stored version with its source and its plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VersionDetailView {
    /// What a list shows of it.
    #[serde(flatten)]
    pub version: VersionView,
    /// Where.
    #[schemars(with = "String")]
    pub scope: Scope,
    /// Of which workflow.
    #[schemars(with = "String")]
    pub workflow: WorkflowKey,
    /// As authored.
    pub source: String,
    /// As workers read it.
    pub plan: Value,
}

/// The schedules of an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SchedulesView {
    /// By scope, workflow and key.
    pub schedules: Vec<ScheduleView>,
}

/// A schedule that is live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScheduleView {
    /// Where.
    #[schemars(with = "String")]
    pub scope: Scope,
    /// Whose runs it starts.
    #[schemars(with = "String")]
    pub workflow: WorkflowKey,
    /// Its name: the key of its activation.
    pub key: String,
    /// Minute, hour, day of month, month, day of week.
    pub cron: String,
    /// A zone of the IANA database.
    pub timezone: String,
    /// Since when it stands like this.
    pub since: At,
    /// Whether it starts runs.
    pub enabled: bool,
}
