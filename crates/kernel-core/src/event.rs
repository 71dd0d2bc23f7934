//! Events, invocations, signals and dependencies: what starts runs and what wakes them.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::name::check_tag;
use crate::payload::{self, Payload, PayloadError, is_storable, to_value};
use crate::{EmitError, Micros, SignalError, StepKey, Timestamp, TraceContext, WorkflowKey};

/// At most this many bytes of serialised JSON, each for `data` and for `context` of an event.
pub const EVENT_MAX_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;
/// At most this many bytes of serialised JSON in a signal's data.
pub const SIGNAL_MAX_DATA_BYTES: usize = 64 * 1024;
/// At most this many tags on an event.
pub const EVENT_MAX_TAGS: usize = 16;
/// The event type of the activation `start` that every workflow has.
pub const START_EVENT: &str = "surefoot.start";

/// How the event types of schedules begin.
const SCHEDULE_EVENT_PREFIX: &str = "surefoot.schedule.";

/// The event type of a workflow's schedule: it is emitted to that workflow alone.
#[must_use]
pub fn schedule_event(name: &str) -> String {
    format!("{SCHEDULE_EVENT_PREFIX}{name}")
}

/// Whether an event type is one of [`schedule_event`]: whoever emits it in the scheduler's place takes a slot from it.
#[must_use]
pub fn is_schedule_event(kind: &str) -> bool {
    kind.starts_with(SCHEDULE_EVENT_PREFIX)
}

/// When the runs of an event are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dispatch {
    /// Create the matching runs before returning.
    #[default]
    Now,
    /// Record the occurrence; a worker creates the runs.
    Deferred,
}

/// One occurrence. A plain value: build it anywhere, emit it through a kernel handle.
///
/// ```
/// use surefoot_kernel_core::Event;
/// let event = Event::new("inventory.stockLow", serde_json::json!({"item": "bolt"})).dedupe_key("bolt:2026-11-29");
/// assert_eq!(event.kind(), "inventory.stockLow");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an event does nothing until it is emitted"]
pub struct Event {
    pub(crate) kind: String,
    pub(crate) data: Result<Value, PayloadError>,
    pub(crate) context: Result<Value, PayloadError>,
    pub(crate) authorization: Option<Value>,
    pub(crate) dedupe_key: Option<String>,
    pub(crate) occurred_at: Option<Timestamp>,
    pub(crate) target: Option<WorkflowKey>,
    pub(crate) dispatch: Dispatch,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) tags: BTreeSet<String>,
}

impl Event {
    /// An untyped event. Prefer the typed constructor that a trigger type brings.
    ///
    /// Data that cannot be written as JSON, such as a float that is not finite, is reported by `emit`.
    pub fn new(kind: impl Into<String>, data: impl Serialize) -> Self {
        Self {
            kind: kind.into(),
            data: to_value(&data),
            context: Ok(Value::Null),
            authorization: None,
            dedupe_key: None,
            occurred_at: None,
            target: None,
            dispatch: Dispatch::Now,
            trace: None,
            tags: BTreeSet::new(),
        }
    }

    /// Starts one workflow by its key; `inputs` are its inputs.
    pub fn start(workflow: impl Into<WorkflowKey>, inputs: impl Serialize) -> Self {
        Self { target: Some(workflow.into()), ..Self::new(START_EVENT, inputs) }
    }

    /// Makes repeats harmless: unique per (app, scope, type), for ever. 1 to 500 characters, none of them NUL.
    pub fn dedupe_key(mut self, key: impl Into<String>) -> Self {
        self.dedupe_key = Some(key.into());
        self
    }

    /// The frozen permission context; the actor is read from its member `actor` only.
    pub fn authorization(mut self, authorization: Value) -> Self {
        self.authorization = Some(authorization);
        self
    }

    /// What every step may read as `context.*`.
    pub fn context(mut self, context: impl Serialize) -> Self {
        self.context = to_value(&context);
        self
    }

    /// When it happened, if not now. `now()` in expressions is this.
    pub fn occurred_at(mut self, at: Timestamp) -> Self {
        self.occurred_at = Some(at);
        self
    }

    /// Restricts the event to one workflow.
    pub fn target(mut self, workflow: impl Into<WorkflowKey>) -> Self {
        self.target = Some(workflow.into());
        self
    }

    /// Where the event belongs in a trace. Runs have a copy, which their children share.
    ///
    /// ```
    /// use surefoot_kernel_core::{Event, TraceContext};
    /// let trace = TraceContext::new("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")?;
    /// let event = Event::new("inventory.stockLow", "bolt").trace_context(trace);
    /// # let _ = event;
    /// # Ok::<(), surefoot_kernel_core::BadTraceContext>(())
    /// ```
    pub fn trace_context(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }

    /// A word of the application by which its runs are found again, such as `customer:42`: no part of the payload, read
    /// by no step. It is a name like that of a workflow, without white space; an event has at most [`EVENT_MAX_TAGS`].
    ///
    /// ```
    /// use surefoot_kernel_core::Event;
    /// let event = Event::new("inventory.stockLow", "bolt").tag("customer:42").tag("urgent");
    /// assert_eq!(event.check()?.tags, ["customer:42", "urgent"]);
    /// # Ok::<(), surefoot_kernel_core::EmitError>(())
    /// ```
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.insert(tag.into());
        self
    }

    /// The trace that the event was put into.
    #[must_use]
    pub fn named_trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref()
    }

    /// Record only; a worker creates the runs.
    pub fn deferred(mut self) -> Self {
        self.dispatch = Dispatch::Deferred;
        self
    }

    /// The namespaced event type.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

/// An event that may be recorded as it is: lengths, sizes and payload rules hold.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedEvent {
    /// 1 to 200 characters.
    pub kind: String,
    /// JSON text, byte for byte.
    pub data: Payload,
    /// JSON text, byte for byte.
    pub context: Payload,
    /// The frozen permission context; absent or empty takes the activation's.
    pub authorization: Option<Value>,
    /// 1 to 500 characters.
    pub dedupe_key: Option<String>,
    /// Absent is the store's time.
    pub occurred_at: Option<Timestamp>,
    /// Only this workflow.
    pub target: Option<WorkflowKey>,
    /// When its runs are created.
    pub dispatch: Dispatch,
    /// Where it belongs in a trace. No part of the payload: a repeat with another one is the same event.
    pub trace: Option<TraceContext>,
    /// By which its runs are found again, sorted. No part of the payload either.
    pub tags: Vec<String>,
    /// Of data and context as they were checked, whatever form they are stored in.
    payload_hash: String,
}

impl Event {
    /// Checks everything that can be checked without a store.
    ///
    /// # Errors
    /// [`EmitError`]: too large, not exactly storable, or a field of the wrong length or with NUL.
    pub fn check(self) -> Result<CheckedEvent, EmitError> {
        check_event_type(&self.kind)?;
        if let Some(key) = &self.dedupe_key {
            text("dedupe key", key, 500)?;
        }
        if self.tags.len() > EVENT_MAX_TAGS {
            return Err(EmitError::TooManyTags { got: self.tags.len(), max: EVENT_MAX_TAGS });
        }
        self.tags.iter().try_for_each(|tag| check_tag(tag))?;
        let authorization = self.authorization.filter(|value| !is_empty(value));
        if let Some(authorization) = &authorization {
            payload::check(authorization).map_err(|error| refused("authorization", error))?;
        }
        let (data, context) = (payload("data", self.data)?, payload("context", self.context)?);
        Ok(CheckedEvent {
            payload_hash: payload_hash(&data, &context),
            data,
            context,
            kind: self.kind,
            authorization,
            dedupe_key: self.dedupe_key,
            occurred_at: self.occurred_at,
            target: self.target,
            dispatch: self.dispatch,
            trace: self.trace,
            tags: self.tags.into_iter().collect(),
        })
    }
}

impl CheckedEvent {
    /// Lower-case hexadecimal SHA-256 over data and context: whether a repeat carries the same payload. It is of the
    /// payload as it was checked, also where a codec has changed the form in which it is stored.
    #[must_use]
    pub fn payload_hash(&self) -> String {
        self.payload_hash.clone()
    }
}

fn payload_hash(data: &Payload, context: &Payload) -> String {
    let both = Value::Array(vec![data.value().clone(), context.value().clone()]);
    crate::canonical::hash(&both)
}

/// The actor of a permission context: its member `actor`, if that is an object or a text. An unknown shape is no
/// actor at all, never a system identity.
#[must_use]
pub fn actor_of(authorization: Option<&Value>) -> Option<Value> {
    let actor = authorization?.as_object()?.get("actor")?;
    (actor.is_object() || actor.as_str().is_some_and(|name| !name.is_empty()))
        .then(|| actor.clone())
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Whether a text may be the type of an event: 1 to 200 characters, none of them NUL.
///
/// # Errors
/// [`EmitError::Length`], [`EmitError::Nul`].
pub fn check_event_type(kind: &str) -> Result<(), EmitError> {
    text("type", kind, 200)
}

fn text(field: &'static str, text: &str, max: usize) -> Result<(), EmitError> {
    let got = text.chars().count();
    if !(1..=max).contains(&got) {
        Err(EmitError::Length { field, min: 1, max, got })
    } else if is_storable(text) {
        Ok(())
    } else {
        Err(EmitError::Nul { field })
    }
}

fn payload(field: &'static str, value: Result<Value, PayloadError>) -> Result<Payload, EmitError> {
    let payload = value.and_then(|value| Payload::from_value(&value));
    let payload = payload.map_err(|error| refused(field, error))?;
    let (bytes, limit) = (payload.text().len(), EVENT_MAX_PAYLOAD_BYTES);
    if bytes > limit { Err(EmitError::TooLarge { field, bytes, limit }) } else { Ok(payload) }
}

fn refused(field: &'static str, PayloadError { pointer, rule }: PayloadError) -> EmitError {
    EmitError::Payload { field, pointer, why: rule.to_string() }
}

/// What started the run, frozen: the run's own copy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Invocation {
    /// The event's data.
    pub trigger: Value,
    /// The inputs, once step zero has computed them; null before.
    pub inputs: Value,
    /// The event's context.
    pub context: Value,
    /// Who it happens for; absent is nobody, never a system identity.
    pub actor: Option<Value>,
    /// Where the event belongs in a trace.
    pub trace: Option<TraceContext>,
}

impl Invocation {
    /// What an event starts a run with. The event's own authorization wins over that of the activation, even if no actor can
    /// be read from it.
    #[must_use]
    pub fn of_event(event: &CheckedEvent, activation: Option<&Value>) -> Self {
        Self {
            trigger: event.data.value().clone(),
            inputs: Value::Null,
            context: event.context.value().clone(),
            actor: actor_of(event.authorization.as_ref().or(activation)),
            trace: event.trace.clone(),
        }
    }
}

/// What a waiting step waits for.
///
/// ```
/// use std::time::Duration;
/// use surefoot_kernel_core::Dependency;
/// let approval = Dependency::on("approval", "order-7").deadline_in(Duration::from_secs(86_400));
/// assert_eq!((approval.kind(), approval.key(), approval.is_app_wide()), ("approval", "order-7", false));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dependency {
    kind: String,
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<Micros>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    app_wide: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    children: bool,
}

impl Dependency {
    /// On a signal of this kind and key in the run's own scope.
    pub fn on(kind: impl Into<String>, key: impl Into<String>) -> Self {
        let (kind, key) = (kind.into(), key.into());
        Self { kind, key, timeout: None, app_wide: false, children: false }
    }

    /// On the end of all children that a step of the same run has created. No signal ends such a wait.
    pub fn on_children(step: &StepKey) -> Self {
        Self { children: true, ..Self::on("children", step.as_str()) }
    }

    /// On a signal that belongs to no scope.
    #[must_use]
    pub fn app_wide(mut self) -> Self {
        self.app_wide = true;
        self
    }

    /// When it passes, the step runs again under the same effect key; it does not fail.
    #[must_use]
    pub fn deadline_in(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    /// What sort of occurrence.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Which one.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// From the first park on.
    #[must_use]
    pub fn timeout(&self) -> Option<Micros> {
        self.timeout
    }

    /// The step whose children's end it is, if it is that and no signal.
    #[must_use]
    pub fn children_of(&self) -> Option<StepKey> {
        self.children.then(|| StepKey::from(self.key.as_str()))
    }

    /// Whether it is the end of this step's children.
    #[must_use]
    pub fn is_children_of(&self, step: &StepKey) -> bool {
        self.children && self.key == step.as_str()
    }

    /// Whether every store can keep its kind and its key. No signal has others: a wait for one would never end.
    #[must_use]
    pub fn is_storable(&self) -> bool {
        is_storable(&self.kind) && is_storable(&self.key)
    }

    /// Whether it is a signal.
    #[must_use]
    pub fn is_signal(&self) -> bool {
        !self.children
    }

    /// Whether it is outside every scope.
    #[must_use]
    pub fn is_app_wide(&self) -> bool {
        self.app_wide
    }
}

/// The durable fact that a dependency occurred. The first one of a key stays.
///
/// A signal is for ever: it may come before anybody waits, and waiting does not use it up. Every later wait on the
/// same kind and key ends at once with the same data. Use a key that is unique for each wait, such as the run's id.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a signal does nothing until it is sent"]
pub struct Signal {
    pub(crate) kind: String,
    pub(crate) key: String,
    pub(crate) data: Result<Value, PayloadError>,
}

impl Signal {
    /// A signal without data.
    pub fn new(kind: impl Into<String>, key: impl Into<String>) -> Self {
        Self { kind: kind.into(), key: key.into(), data: Ok(Value::Null) }
    }

    /// At most 64 KiB of JSON; data that cannot be written as JSON is reported when it is sent.
    pub fn data(mut self, data: impl Serialize) -> Self {
        self.data = to_value(&data);
        self
    }
}

/// A signal that may be recorded as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedSignal {
    /// 1 to 200 characters.
    pub kind: String,
    /// 1 to 500 characters.
    pub key: String,
    /// JSON text.
    pub data: Payload,
}

impl Signal {
    /// Checks everything that can be checked without a store.
    ///
    /// # Errors
    /// [`SignalError`]: too large, not exactly storable, or a field of the wrong length or with NUL.
    pub fn check(self) -> Result<CheckedSignal, SignalError> {
        for (field, text, max) in [("kind", &self.kind, 200), ("key", &self.key, 500)] {
            let got = text.chars().count();
            if !(1..=max).contains(&got) {
                return Err(SignalError::Length { field, min: 1, max, got });
            }
            if !is_storable(text) {
                return Err(SignalError::Nul { field });
            }
        }
        let refused = |PayloadError { pointer, rule }| SignalError::Payload {
            pointer,
            why: rule.to_string(),
        };
        let data = self.data.and_then(|value| Payload::from_value(&value)).map_err(refused)?;
        let (bytes, limit) = (data.text().len(), SIGNAL_MAX_DATA_BYTES);
        if bytes > limit {
            return Err(SignalError::TooLarge { bytes, limit });
        }
        Ok(CheckedSignal { kind: self.kind, key: self.key, data })
    }
}
