//! What fills one screen: a run with all that belongs to it, a version, schedules, a timeline.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use surefoot_kernel_core::{
    App, Explanation, Fact, JournalEntry, PlanStep, RunCount, RunSpan, ScheduleRow, Scope,
    StepValues, Timestamp, WorkflowKey,
};

use super::{At, ShowView, VersionView, millis};
use crate::schema;

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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JournalRowView {
    /// Journaled facts of the run before these.
    pub seq: u64,
    /// The writer's generation.
    pub generation: u64,
    /// Store time.
    pub at: At,
    /// What happened, in order. Values that the application's resolver gave are left out: they may be secrets.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub facts: Vec<Fact>,
}

impl From<&JournalEntry> for JournalRowView {
    fn from(entry: &JournalEntry) -> Self {
        let JournalEntry { seq, generation, at, facts } = entry;
        let facts = facts.iter().map(without_values).collect();
        Self { seq: *seq, generation: *generation, at: At(*at), facts }
    }
}

/// A fact; what was resolved is null in it.
fn without_values(fact: &Fact) -> Fact {
    let Fact::ValuesResolved { step, values } = fact else { return fact.clone() };
    let mut bare = StepValues::default();
    for (reference, _) in values.iter() {
        bare.keep(reference, Value::Null);
    }
    Fact::ValuesResolved { step: step.clone(), values: bare }
}

/// A stored version with its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VersionDetailView {
    /// Whose.
    #[schemars(with = "String")]
    pub app: App,
    /// Where.
    #[schemars(with = "String")]
    pub scope: Scope,
    /// Of which workflow.
    #[schemars(with = "String")]
    pub workflow: WorkflowKey,
    /// What a list shows of it.
    pub version: VersionView,
    /// As authored.
    pub source: String,
    /// Its steps in their places; empty if the plan cannot be read.
    #[schemars(with = "Vec<schema::PlanStep>")]
    pub outline: Vec<PlanStep>,
    /// Steps that are left out.
    pub outline_omitted: usize,
    /// Why the plan cannot be read, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// The schedules of an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SchedulesView {
    /// By scope, workflow and name.
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
    /// Five fields.
    pub cron: String,
    /// Of the IANA database.
    pub timezone: String,
    /// Since when it stands like this.
    pub since: At,
    /// Whether it starts runs.
    pub enabled: bool,
    /// When it is due next; absent if it is switched off.
    pub next_at: Option<At>,
}

impl ScheduleView {
    pub(crate) fn of(row: &ScheduleRow, next: Option<Timestamp>) -> Self {
        Self {
            scope: row.scope.clone(),
            workflow: row.workflow.clone(),
            key: row.key.clone(),
            cron: row.schedule.cron.clone(),
            timezone: row.schedule.timezone.clone().unwrap_or_else(|| "UTC".to_owned()),
            since: At(row.since),
            enabled: row.enabled,
            next_at: next.map(At),
        }
    }
}

/// Runs over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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
