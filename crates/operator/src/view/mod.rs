//! What people and programs see. As JSON, these forms are part of the interface.

mod detail;
mod doctor;
mod health;
mod inspect;
mod lists;
mod retain;
mod run;

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use surefoot_kernel_core::{Micros, Timestamp};

pub use detail::{JournalView, StepsView};
pub use doctor::{CapChange, CheckView, DiffView, DoctorView};
pub use health::{AppHealthView, EventHealthView, HealthView, MissingModuleView, WorkerHealthView};
pub use inspect::{
    InspectView, JournalRowView, ScheduleView, SchedulesView, SliceView, TimelineView,
    VersionDetailView,
};
pub use lists::{
    ActivationView, EffectView, EffectsView, EmittedView, EventView, EventsView, PublishedView,
    SignalSentView, SignalView, SignalsView, VersionView, VersionsView, WorkflowView,
    WorkflowsView,
};
pub use retain::{
    AuditRowView, AuditView, DeletionView, OpenEffectView, PrunedView, RedrivenView, SwitchedView,
};
pub(crate) use run::event_summary;
pub use run::{
    BillView, Done, EventSummary, Outcome, RunView, RunsView, ShowView, StepView, VerdictView,
    VerdictsView, WatchView, WatchedStep,
};

/// An instant: RFC 3339, UTC, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At(pub Timestamp);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl JsonSchema for At {
    fn schema_name() -> Cow<'static, str> {
        "Instant".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An instant: RFC 3339, UTC, microseconds.",
            "type": "string",
            "format": "date-time",
        })
    }
}

impl From<Timestamp> for At {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

/// Whole milliseconds.
pub(crate) const fn millis(span: Micros) -> i64 {
    span.get() / 1_000
}
