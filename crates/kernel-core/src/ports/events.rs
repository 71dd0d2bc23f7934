//! Events and signals.

use async_trait::async_trait;

use super::{EmitError, SignalError, StoreError, Stored};
use crate::event::{CheckedEvent, CheckedSignal};
use crate::{
    App, BadName, EventId, Lease, Micros, Plans, RunId, Scope, SessionId, Timestamp, TraceContext,
    WorkflowKey,
};

/// Records events and signals, and creates runs.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// Records an event and, unless it is deferred, creates its runs: one per enabled activation of an active
    /// version in the same app and scope, frozen when it is recorded. A dedupe key that exists already records
    /// nothing and returns the original ids; with `Dispatch::Now` it dispatches an event that is still pending.
    ///
    /// # Errors
    /// `UnknownOutcome`: the event is found again by emitting with the same id.
    async fn event_emit(&self, emit: Emit) -> Result<Emission, EmitError>;

    /// Creates the runs of at most `limit` deferred events that are due. One that fails is kept back by the
    /// dispatch backoff, and dead-lettered at the eighth time; it does not hold up the others.
    async fn event_dispatch(&self, app: &App, limit: u32) -> Result<Dispatched, StoreError>;

    /// Records a signal, once, and wakes at most 1,000 of the runs that wait for it.
    async fn signal_send(&self, send: SendSignal) -> Result<SignalSent, SignalError>;
}

/// An event to record.
#[derive(Debug, Clone, PartialEq)]
pub struct Emit {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Made by the caller, so that an emit in doubt is found again.
    pub id: EventId,
    /// What occurred.
    pub event: CheckedEvent,
    /// Start runs as running, for a local worker with free slots.
    pub eager: Option<Eager>,
}

impl Emit {
    /// Whether app, scope and target may be names.
    ///
    /// # Errors
    /// [`BadName`].
    pub fn check_names(&self) -> Result<(), BadName> {
        self.app.check()?;
        self.scope.check()?;
        self.event.target.as_ref().map_or(Ok(()), WorkflowKey::check)
    }
}

/// Free slots of a local worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Eager {
    /// Who starts them.
    pub session: SessionId,
    /// Footprint hashes that it can run.
    pub footprints: Vec<String>,
    /// At most so many.
    pub slots: u32,
    /// How long their leases last.
    pub lease: Micros,
    /// What the worker has read of plans.
    pub plans: Plans,
}

impl Eager {
    /// The lease of a run that is started then.
    #[must_use]
    pub const fn lease(&self, now: Timestamp) -> Lease {
        Lease { owner: self.session, until: now.plus(self.lease), length: self.lease }
    }
}

/// What became of an event.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Emission {
    /// The event; the original one if the key existed.
    pub event: EventId,
    /// Its runs so far, in a stable order.
    pub runs: Vec<RunId>,
    /// How many activations matched when it was recorded.
    pub matched: u32,
    /// Whether this call recorded it.
    pub new: bool,
    /// Whether its payload equals the recorded one's.
    pub same_payload: bool,
    /// Whether its tags are the recorded ones. A repeat adds none.
    pub same_tags: bool,
    /// Runs that this call started as running, for the local worker: as reading them whole would bring them.
    pub started: Vec<Stored>,
}

impl Emission {
    /// For stores.
    #[must_use]
    pub const fn of(event: EventId) -> Self {
        Self {
            event,
            runs: Vec::new(),
            matched: 0,
            new: true,
            same_payload: true,
            same_tags: true,
            started: Vec::new(),
        }
    }
}

/// What one pass of dispatch did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dispatched {
    /// Events whose runs exist now.
    pub dispatched: Vec<EventId>,
    /// Those of them that belong to a trace.
    pub traces: Vec<(EventId, TraceContext)>,
    /// Events that failed and are kept back, or dead-lettered.
    pub failed: Vec<EventId>,
    /// Whether there may be more.
    pub more: bool,
}

/// A signal to record.
#[derive(Debug, Clone, PartialEq)]
pub struct SendSignal {
    /// Whose.
    pub app: App,
    /// Where; none is app-wide.
    pub scope: Option<Scope>,
    /// What occurred.
    pub signal: CheckedSignal,
}

impl SendSignal {
    /// Whether app and scope may be names.
    ///
    /// # Errors
    /// [`BadName`].
    pub fn check_names(&self) -> Result<(), BadName> {
        self.app.check()?;
        self.scope.as_ref().map_or(Ok(()), Scope::check)
    }
}

/// What became of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalSent {
    /// Whether this call recorded it.
    pub new: bool,
    /// The runs that it woke, sorted.
    pub woken: Vec<RunId>,
}
