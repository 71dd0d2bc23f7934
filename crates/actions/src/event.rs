//! Events and signals: recorded in the step's own transaction, so they exist if and only if its outcome does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use surefoot_kernel_core::{
    CheckedEvent, CheckedSignal, Code, EffectKey, Emit, EmitError, Event, EventId, RunId,
    SendSignal as Send, Signal, SignalError, StepKey, TxStore, WorkflowKey,
};
use surefoot_language::{
    Access, ActionResult, ConfigRemark, PlanResult, Planned, StepCx, Stop, Transactional,
    TransactionalCx,
};

use crate::config::{Draft, refused};

/// The event cannot be recorded as it is.
pub const EVENT_INVALID: &str = "EVENT_INVALID";
/// The signal cannot be recorded as it is.
pub const SIGNAL_INVALID: &str = "SIGNAL_INVALID";

/// An event to emit.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventInput {
    /// The namespaced type, 1 to 200 characters.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 200))]
    pub kind: String,
    /// What occurred; at most 16 MiB of JSON.
    #[serde(default)]
    pub data: Value,
    /// What every step of the runs that it starts may read as `context.*`.
    #[serde(default)]
    pub context: Value,
    /// The same key of the same type in this scope is recorded once, for ever.
    #[serde(default)]
    #[schemars(length(min = 1, max = 500))]
    pub dedupe_key: Option<String>,
    /// Only this workflow.
    #[serde(default)]
    pub workflow: Option<String>,
}

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventOutput {
    /// Its id; the one that was there if its key was.
    pub event: String,
    /// Whether this step recorded it.
    pub new: bool,
    /// How many activations it matched.
    pub matched: u32,
}

/// Records an event in the run's own app and scope. Workers create the runs that it starts, after the commit.
///
/// The event happens for the run's actor, if the run has one.
#[derive(Debug, Clone)]
pub struct EmitEvent<S> {
    store: S,
}

impl<S: TxStore> EmitEvent<S> {
    /// On the store of the runs.
    pub const fn new(store: S) -> Self {
        Self { store }
    }
}

fn bare(input: &EventInput) -> Event {
    let EventInput { kind, data, context, dedupe_key, workflow } = input.clone();
    let mut event = Event::new(kind, data).context(context).deferred();
    if let Some(key) = dedupe_key {
        event = event.dedupe_key(key);
    }
    if let Some(workflow) = workflow {
        event = event.target(workflow);
    }
    event
}

fn event_of(cx: &StepCx, input: &EventInput) -> Result<CheckedEvent, Stop> {
    let mut event = bare(input);
    if let Some(actor) = &cx.invocation().actor {
        event = event.authorization(json!({ "actor": actor }));
    }
    if let Some(trace) = cx.trace_context() {
        event = event.trace_context(trace.clone());
    }
    event.check().map_err(emit_stop)
}

fn emit_stop(error: EmitError) -> Stop {
    // The database's verdict is in it.
    let EmitError::Store(error) = error else {
        return Stop::fail(error.code().unwrap_or(Code::from(EVENT_INVALID)), error.to_string());
    };
    Stop::from(error)
}

/// The id of the event that a step records. Made of the step, so that every attempt of it names the same one.
#[must_use]
pub fn event_id(run: RunId, step: &StepKey) -> EventId {
    let key = EffectKey::of(run, step);
    let mut bytes = [0; 16];
    let pairs = key.as_str().as_bytes().chunks_exact(2);
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let hex = std::str::from_utf8(pair).unwrap_or_default();
        *byte = u8::from_str_radix(hex, 16).unwrap_or_default();
    }
    EventId::from_bytes(bytes)
}

impl<S: TxStore> Transactional<S::Tx> for EmitEvent<S> {
    const NAME: &'static str = "emitEvent";
    const ABOUT: &'static str = "Records an event together with the step's outcome.";
    type Input = EventInput;
    type Output = EventOutput;

    async fn authorize(&self, cx: &StepCx, input: &EventInput) -> ActionResult<Access> {
        event_of(cx, input).map(|_| Access::Allowed)
    }

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, S::Tx>,
        input: EventInput,
    ) -> ActionResult<EventOutput> {
        let emit = Emit {
            app: cx.app().clone(),
            scope: cx.scope().clone(),
            id: event_id(cx.run_id(), cx.step_key()),
            event: event_of(cx, &input)?,
            eager: None,
        };
        emit.check_names().map_err(|error| Stop::fail(EVENT_INVALID, error.to_string()))?;
        let emitted = self.store.event_emit_in(cx.tx(), emit).await.map_err(emit_stop)?;
        let (event, new, matched) = (emitted.event.to_string(), emitted.new, emitted.matched);
        Ok(EventOutput { event, new, matched })
    }

    async fn plan(&self, cx: &StepCx, input: &EventInput) -> PlanResult<EventOutput> {
        let to = input.workflow.as_ref().map_or_else(String::new, |it| format!(" to `{it}` alone"));
        let planned = Planned::new(format!("Emit `{}`{to} in `{}`", input.kind, cx.scope()));
        Ok(match event_of(cx, input) {
            Ok(_) => planned,
            Err(stop) => planned.issue(stop.message().to_owned()),
        })
    }
}

/// What a step would refuse, of as much of its config as is written.
pub(crate) fn judge_event(draft: &Draft) -> Vec<ConfigRemark> {
    let config = draft.filled(stand_in);
    let input: Option<EventInput> = serde_json::from_value(config).ok();
    let refusal = input.and_then(|input| {
        let target =
            input.workflow.as_ref().map_or(Ok(()), |it| WorkflowKey::from(it.as_str()).check());
        let target = target.map_err(|bad| bad.to_string());
        target.and_then(|()| bare(&input).check().map(drop).map_err(|why| why.to_string())).err()
    });
    refusal.map(|why| refused("", why)).into_iter().collect()
}

/// The same for a signal.
pub(crate) fn judge_signal(draft: &Draft) -> Vec<ConfigRemark> {
    let config = draft.filled(stand_in);
    let input: Option<SignalInput> = serde_json::from_value(config).ok();
    let refusal = input.and_then(|input| signal_of(&input).err());
    refusal.map(|stop| refused("", stop.message())).into_iter().collect()
}

/// What an expression gives may be anything.
fn stand_in(pointer: &str) -> (String, Option<Value>) {
    match pointer {
        "/type" | "/kind" | "/key" => (pointer.to_owned(), Some(json!("computed"))),
        "/dedupeKey" | "/workflow" => (pointer.to_owned(), None),
        _ => (pointer.to_owned(), Some(Value::Null)),
    }
}

/// A signal to send.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalInput {
    /// As in `waitFor`, 1 to 200 characters.
    #[schemars(length(min = 1, max = 200))]
    pub kind: String,
    /// As in `waitFor`, 1 to 500 characters.
    #[schemars(length(min = 1, max = 500))]
    pub key: String,
    /// What the waiting step gets; at most 64 KiB of JSON.
    #[serde(default)]
    pub data: Value,
}

/// What became of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SignalOutput {
    /// Whether this step recorded it. The first one of a kind and key stays.
    pub new: bool,
}

/// Records a signal in the run's own scope and wakes who waits for it.
#[derive(Debug, Clone)]
pub struct SendSignal<S> {
    store: S,
}

impl<S: TxStore> SendSignal<S> {
    /// On the store of the runs.
    pub const fn new(store: S) -> Self {
        Self { store }
    }
}

fn signal_of(input: &SignalInput) -> Result<CheckedSignal, Stop> {
    let SignalInput { kind, key, data } = input.clone();
    Signal::new(kind, key).data(data).check().map_err(signal_stop)
}

fn signal_stop(error: SignalError) -> Stop {
    let SignalError::Store(error) = error else {
        return Stop::fail(SIGNAL_INVALID, error.to_string());
    };
    Stop::from(error)
}

impl<S: TxStore> Transactional<S::Tx> for SendSignal<S> {
    const NAME: &'static str = "signal";
    const ABOUT: &'static str = "Records a signal together with the step's outcome.";
    type Input = SignalInput;
    type Output = SignalOutput;

    async fn authorize(&self, _: &StepCx, input: &SignalInput) -> ActionResult<Access> {
        signal_of(input).map(|_| Access::Allowed)
    }

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, S::Tx>,
        input: SignalInput,
    ) -> ActionResult<SignalOutput> {
        let (app, scope) = (cx.app().clone(), Some(cx.scope().clone()));
        let send = Send { app, scope, signal: signal_of(&input)? };
        let sent = self.store.signal_send_in(cx.tx(), send).await.map_err(signal_stop)?;
        Ok(SignalOutput { new: sent.new })
    }

    async fn plan(&self, cx: &StepCx, input: &SignalInput) -> PlanResult<SignalOutput> {
        let SignalInput { kind, key, .. } = input;
        let planned = Planned::new(format!("Signal `{kind}` of `{key}` in `{}`", cx.scope()));
        Ok(match signal_of(input) {
            Ok(_) => planned,
            Err(stop) => planned.issue(stop.message().to_owned()),
        })
    }
}
