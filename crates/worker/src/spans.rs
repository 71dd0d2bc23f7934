//! Spans of what the handle and its workers do. Ids, names and numbers only: no payload.
//!
//! With the feature `otel`, an event that is emitted inside of a trace takes it along, and whoever executes its runs
//! goes on in the same trace. A run may live for days, so no span is open for as long as it lives: each stay on a
//! worker is a span of its own.

use tracing::{Span, field};

use surefoot_kernel_core::{App, Call, Dispatched, Event, Run, Scope, TraceContext};

/// An event on its way into the store. It belongs to the trace that the event names, if it names one.
pub(crate) fn emit(app: &App, scope: &Scope, event: &Event) -> Span {
    let (app, scope, kind) = (app.as_str(), scope.as_str(), event.kind());
    let span = tracing::info_span!("emit", app, scope, kind, event = field::Empty);
    carried::goes_on(&span, event.named_trace());
    span
}

/// One stay of a run on this worker.
pub(crate) fn run(run: &Run, trace: Option<&TraceContext>) -> Span {
    let span = tracing::info_span!(
        parent: None,
        "run",
        run = %run.id,
        app = run.origin.app.as_str(),
        scope = run.origin.scope.as_str(),
        workflow = run.origin.workflow.as_str(),
        attempt = run.attempt,
        state = field::Empty,
    );
    carried::goes_on(&span, trace);
    span
}

/// The execution of a step's action.
pub(crate) fn step(call: &Call) -> Span {
    let (action, class, attempt) = (call.action.as_str(), call.class.as_str(), call.attempt);
    tracing::info_span!("step", step = %call.step, action, class, attempt)
}

/// What comes before an action may be called: its config, permissions, the charge, the mark.
pub(crate) fn prepare(call: &Call) -> Span {
    tracing::debug_span!("prepare", step = %call.step, action = call.action.as_str())
}

/// The question what became of an effect.
pub(crate) fn reconcile(call: &Call) -> Span {
    let (action, attempt) = (call.action.as_str(), call.attempt);
    tracing::info_span!("reconcile", step = %call.step, action, attempt)
}

/// Facts on their way into the store.
pub(crate) fn commit(facts: usize) -> Span {
    tracing::debug_span!("commit", facts)
}

/// A claim of whatever is due. Of many traces, so it is in none of them: [`claimed`] is.
pub(crate) fn claims(limit: u32) -> Span {
    tracing::debug_span!("claims", limit)
}

/// Marks in a run's own trace that this worker has it now.
pub(crate) fn claimed(run: &Run, trace: Option<&TraceContext>) {
    if trace.is_some() {
        let (attempt, generation) = (run.attempt, run.generation);
        let span = tracing::info_span!(parent: None, "claim", run = %run.id, attempt, generation);
        carried::goes_on(&span, trace);
    }
}

/// A pass over events that were only recorded. Of many traces too: [`dispatched`] marks each in its own.
pub(crate) fn dispatches() -> Span {
    tracing::debug_span!("dispatches")
}

/// Marks in the traces of events that their runs exist now.
pub(crate) fn dispatched(pass: &Dispatched) {
    for (event, trace) in &pass.traces {
        let span = tracing::info_span!(parent: None, "dispatch", event = %event);
        carried::goes_on(&span, Some(trace));
    }
}

/// An event that somebody other than a kernel's handle records: the span to do it in, and the event in the trace of that
/// span, unless it names one. Record its id as the span's `event`.
pub fn traced(app: &App, scope: &Scope, event: Event) -> (Span, Event) {
    let span = emit(app, scope, &event);
    let event = span.in_scope(|| in_trace(event));
    (span, event)
}

/// The event with the trace of the current span, if it names none and there is one.
pub(crate) fn in_trace(event: Event) -> Event {
    if event.named_trace().is_some() {
        return event;
    }
    match carried::here() {
        Some(trace) => event.trace_context(trace),
        None => event,
    }
}

#[cfg(feature = "otel")]
mod carried {
    use opentelemetry::Context;
    use opentelemetry::trace::{
        SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    };
    use surefoot_kernel_core::TraceContext;
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    /// Puts a span that is not entered yet into a trace.
    pub(super) fn goes_on(span: &Span, trace: Option<&TraceContext>) {
        if let Some(parent) = trace.and_then(read) {
            // Without a layer for OpenTelemetry there is nothing to set.
            let _ = span.set_parent(Context::new().with_remote_span_context(parent));
        }
    }

    /// The trace of the current span.
    pub(super) fn here() -> Option<TraceContext> {
        let context = Span::current().context();
        let span = context.span();
        let here = span.span_context();
        if !here.is_valid() {
            return None;
        }
        let (trace, id, flags) = (here.trace_id(), here.span_id(), here.trace_flags());
        let written = TraceContext::new(format!("00-{trace:032x}-{id:016x}-{flags:02x}")).ok()?;
        let state = here.trace_state().header();
        // A state that is not well formed is no reason to lose the trace.
        Some(written.clone().with_state(state).unwrap_or(written))
    }

    fn read(trace: &TraceContext) -> Option<SpanContext> {
        let id = TraceId::from_hex(trace.trace_id()).ok()?;
        let parent = SpanId::from_hex(trace.parent_id()).ok()?;
        let flags = TraceFlags::default().with_sampled(trace.is_sampled());
        let state = trace.tracestate().and_then(|state| state.parse::<TraceState>().ok());
        Some(SpanContext::new(id, parent, flags, true, state.unwrap_or_default()))
    }
}

#[cfg(not(feature = "otel"))]
mod carried {
    use surefoot_kernel_core::TraceContext;
    use tracing::Span;

    pub(super) fn goes_on(_: &Span, _: Option<&TraceContext>) {}

    pub(super) fn here() -> Option<TraceContext> {
        None
    }
}
