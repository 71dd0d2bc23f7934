//! The operator's use cases, shared by command line, HTTP API and console: they render the same words.
//!
//! [`Operator`] looks, and acts: every verb takes the revision that was looked at, a reason and an actor, changes
//! nothing if the run has moved since, and leaves an audit row. What a verb may do is decided by the core on the
//! stored row; there is no second copy of the rules here.
//!
//! The views are plain values. As JSON their field names and forms are part of the interface: ids are text, times
//! RFC 3339 in UTC with microseconds.

mod author;
mod detail;
mod doctor;
mod dry_run;
mod error;
mod health;
mod inspect;
mod operator;
mod read;
mod retain;
pub mod schema;
mod store;
mod timeline;
mod unmatched;
mod verb;
mod view;
mod watch;

pub use author::{ActivateVersion, EmitEvent, PublishSource, SendTo};
pub use doctor::WhichVersion;
pub use dry_run::AskDryRun;
pub use error::{ErrorClass, ErrorKind, OperatorError};
pub use health::{
    CLOCK_SKEW_NOTED_FROM, EVENT_PENDING_RED_AFTER, RUN_DUE_RED_AFTER, UNSETTLED_RED_AFTER,
};
pub use inspect::JournalRange;
pub use operator::{Operator, check_reason};
pub use retain::{DeletePlace, PrunePolicy, Switch};
pub use store::Store;
pub use timeline::TimelineOf;
pub use verb::{Abandon, Cancel, Reconcile, Resolve, Retry};
pub use view::{
    ActivationView, AppHealthView, At, AuditRowView, AuditView, BillView, CapChange, CheckView,
    DeletionView, DiffView, DoctorView, Done, EffectView, EffectsView, EmittedView,
    EventHealthView, EventSummary, EventView, EventsView, HealthView, InspectView, JournalRowView,
    JournalView, MissingModuleView, OpenEffectView, Outcome, PrunedView, PublishedView,
    RedrivenView, RunView, RunsView, ScheduleView, SchedulesView, ShowView, SignalSentView,
    SignalView, SignalsView, SliceView, StepView, StepsView, SwitchedView, TimelineView,
    VerdictView, VerdictsView, VersionDetailView, VersionView, VersionsView, WatchView,
    WatchedStep, WorkerHealthView, WorkflowView, WorkflowsView,
};
