//! Parts of a run, page by page.

use schemars::JsonSchema;
use serde::Serialize;

use super::{JournalRowView, StepView};

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
    pub entries: Vec<JournalRowView>,
    /// Where the next page begins; opaque.
    pub next: Option<String>,
}
