//! What fills one screen: a run with all that belongs to it, a version, a timeline.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use surefoot_kernel_core::{
    App, Explanation, Fact, JournalEntry, PlanStep, RunCount, RunSpan, Scope, Timestamp,
    WorkflowKey,
};

use super::{At, ShowView, VersionView, millis};

/// One run with all that belongs to it, of one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectView {
    /// In detail.
    pub show: ShowView,
    /// Where it stands, and what may be done.
    pub explanation: Explanation,
    /// The steps of its plan in their places; empty if it cannot be read.
    pub outline: Vec<PlanStep>,
    /// Steps of the plan that are left out.
    pub outline_omitted: usize,
    /// The rows of its journal that were asked for, oldest first.
    pub journal: Vec<JournalRowView>,
    /// How many rows it has.
    pub journal_rows: u64,
}

/// One commit of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JournalRowView {
    /// Journaled facts of the run before these.
    pub seq: u64,
    /// The writer's generation.
    pub generation: u64,
    /// Store time.
    pub at: At,
    /// What happened, in order, in the words of the journal. Values that the application's resolver gave are left out:
    /// they may be secrets.
    pub facts: Vec<Value>,
}

impl From<&JournalEntry> for JournalRowView {
    fn from(entry: &JournalEntry) -> Self {
        let facts = entry.facts.iter().map(written);
        Self {
            seq: entry.seq,
            generation: entry.generation,
            at: At(entry.at),
            facts: facts.collect(),
        }
    }
}

fn written(fact: &Fact) -> Value {
    if let Fact::ValuesResolved { step, values } = fact {
        let names: Vec<&str> = values.iter().map(|(reference, _)| reference).collect();
        return json!({ "values_resolved": { "step": step, "values": names } });
    }
    serde_json::to_value(fact).unwrap_or_default()
}

/// A stored version with its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectVersionView {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Of which workflow.
    pub workflow: WorkflowKey,
    /// What a list shows of it.
    pub version: VersionView,
    /// As authored.
    pub source: String,
    /// Its steps in their places; empty if the plan cannot be read.
    pub outline: Vec<PlanStep>,
    /// Steps that are left out.
    pub outline_omitted: usize,
    /// Why the plan cannot be read, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// Runs over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineView {
    /// The first instant.
    pub from: At,
    /// The end, not in it.
    pub until: At,
    /// How long a slice is.
    pub slice_ms: i64,
    /// Every run that was created in the span, whatever the number of slices.
    pub total: u64,
    /// Every slice, in order; also those without runs.
    pub slices: Vec<SliceView>,
}

/// One slice of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SliceView {
    /// Its first instant.
    pub at: At,
    /// Runs created in it.
    pub runs: u64,
    /// The same by where they stand now.
    pub by_state: BTreeMap<&'static str, u64>,
    /// The longest that one of them waited for its first claim; absent where none was claimed.
    pub worst_lag_ms: Option<i64>,
}

impl TimelineView {
    pub(crate) fn of(span: &RunSpan, counts: &[RunCount]) -> Self {
        let slice = span.slice_micros();
        let mut slices: Vec<SliceView> = (0..i64::from(span.slices))
            .map(|index| {
                let at = span.from.micros().saturating_add(slice.saturating_mul(index));
                let (at, by_state) = (At(Timestamp::from_micros(at)), BTreeMap::new());
                SliceView { at, runs: 0, by_state, worst_lag_ms: None }
            })
            .collect();
        for count in counts {
            let index = usize::try_from(count.slice).unwrap_or(usize::MAX);
            let Some(slice) = slices.get_mut(index) else { continue };
            slice.runs += count.count;
            *slice.by_state.entry(count.state.as_str()).or_insert(0) += count.count;
            slice.worst_lag_ms = slice.worst_lag_ms.max(count.worst_lag.map(millis));
        }
        let total = slices.iter().map(|slice| slice.runs).sum();
        Self {
            from: At(span.from),
            until: At(span.until()),
            slice_ms: slice / 1_000,
            total,
            slices,
        }
    }
}
