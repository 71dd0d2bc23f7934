//! Events.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surefoot_kernel_core::{
    App, EVENT_MAX_PAYLOAD_BYTES, Event, EventFilter, EventStatus, Scope, TraceContext, WorkflowKey,
};
use surefoot_operator::{EmitEvent, EmittedView, EventsView, RedrivenView, schema};

use super::Answered;
use super::route::Route;
use super::verbs::{SMALL_MAX_BYTES, Why};
use crate::access::Caller;
use crate::problem::Problem;
use crate::request::{Body, EventType, Input, Limit, NameShape, PathOf, Query, maybe, named, one};
use crate::shared::Shared;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/events", "list_events", "Events, newest first", list)
            .query::<EventsQuery>()
            .answers::<EventsView>(),
        Route::post("/events", "emit_event", "Emit an event; a key makes repeats harmless", emit)
            .body::<EmitBody>()
            .answers::<EmittedView>(),
        Route::post(
            "/events/{event}/redrive",
            "redrive_event",
            "Have the runs of a dead-lettered event created after all",
            redrive,
        )
        .body::<Why>()
        .answers::<RedrivenView>(),
    ]
}

/// Which events.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Only there.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    scope: Option<Scope>,
    /// Only of this type.
    #[serde(default, rename = "type", deserialize_with = "maybe")]
    kind: Option<EventType>,
    /// Only in this status.
    #[serde(default, deserialize_with = "status")]
    #[schemars(with = "Option<schema::EventStatus>")]
    status: Option<EventStatus>,
    /// At most so many.
    #[serde(default)]
    limit: Limit,
    /// From the page before.
    #[serde(default)]
    cursor: Option<String>,
}

fn status<'de, D: serde::Deserializer<'de>>(of: D) -> Result<Option<EventStatus>, D::Error> {
    let Some(text) = Option::<String>::deserialize(of)? else { return Ok(None) };
    let known = EventStatus::ALL.iter().copied().find(|status| status.as_str() == text);
    known.map(Some).ok_or_else(|| {
        let all: Vec<&str> = EventStatus::ALL.iter().map(|status| status.as_str()).collect();
        serde::de::Error::custom(format!("the statuses are {}", all.join(", ")))
    })
}

/// A tag; `emit` says what one is.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Tag(#[schemars(with = "NameShape")] String);

/// What occurred.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EmitBody {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Where.
    #[serde(deserialize_with = "one")]
    #[schemars(with = "NameShape")]
    scope: Scope,
    /// The event's type; `surefoot.start` with `workflow` starts that workflow.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 200))]
    kind: String,
    /// Its data.
    #[serde(default)]
    data: Value,
    /// What every step may read as `context`.
    #[serde(default)]
    context: Value,
    /// Makes repeats harmless.
    #[serde(default)]
    #[schemars(length(min = 1, max = 500))]
    key: Option<String>,
    /// Words by which its runs are found again.
    #[serde(default)]
    #[schemars(length(max = 16))]
    tags: Vec<Tag>,
    /// Only for this workflow.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    workflow: Option<WorkflowKey>,
    /// Where it belongs in a trace: the value of a W3C header `traceparent`; by default, that of the request.
    #[serde(default)]
    traceparent: Option<String>,
    /// The value of the header `tracestate` beside it.
    #[serde(default)]
    tracestate: Option<String>,
    /// Record only; a worker creates the runs.
    #[serde(default)]
    deferred: bool,
}

impl Input for EmitBody {
    const MAX_BYTES: usize = 2 * EVENT_MAX_PAYLOAD_BYTES + SMALL_MAX_BYTES;
}

async fn list(caller: Caller, Query(query): Query<EventsQuery>) -> Answered<EventsView> {
    let filter = EventFilter {
        app: Some(caller.operator.known_app(query.app).await?),
        scope: query.scope,
        kind: query.kind.map(|kind| kind.0),
        status: query.status,
        limit: query.limit.0,
        cursor: query.cursor,
    };
    Ok(Json(caller.operator.events(filter).await?))
}

async fn emit(
    caller: Caller,
    State(shared): State<Shared>,
    headers: HeaderMap,
    Body(mut body): Body<EmitBody>,
) -> Answered<EmittedView> {
    if body.traceparent.is_none() && body.tracestate.is_none() {
        (body.traceparent, body.tracestate) = trace_of(&headers);
    }
    let app = caller.operator.app(body.app.clone()).await?;
    let scope = body.scope.clone();
    let event = event_of(body)?;
    Ok(Json(caller.operator.emit(shared.ids(), EmitEvent { app, scope, event }).await?))
}

/// The trace of the request, as programs that are traced send it by themselves. One that is not well formed counts as
/// none: that is what W3C has receivers do.
fn trace_of(headers: &HeaderMap) -> (Option<String>, Option<String>) {
    let one = |name: &str| {
        let mut sent = headers.get_all(name).iter();
        let first = sent.next()?.to_str().ok()?.to_owned();
        sent.next().is_none().then_some(first)
    };
    let Some(parent) = one("traceparent") else { return (None, None) };
    let Ok(trace) = TraceContext::new(parent.clone()) else { return (None, None) };
    let state = one("tracestate").filter(|state| trace.with_state(state.clone()).is_ok());
    (Some(parent), state)
}

fn event_of(body: EmitBody) -> Result<Event, Problem> {
    let mut event = Event::new(body.kind, body.data).context(body.context);
    if let Some(key) = body.key {
        event = event.dedupe_key(key);
    }
    event = body.tags.into_iter().fold(event, |event, tag| event.tag(tag.0));
    if let Some(workflow) = body.workflow {
        event = event.target(workflow);
    }
    if let Some(traceparent) = body.traceparent {
        let trace = TraceContext::new(traceparent).and_then(|trace| match body.tracestate {
            Some(state) => trace.with_state(state),
            None => Ok(trace),
        });
        event = event.trace_context(trace.map_err(|bad| Problem::bad_request(bad.to_string()))?);
    } else if body.tracestate.is_some() {
        return Err(Problem::bad_request("`tracestate` says nothing without `traceparent`"));
    }
    Ok(if body.deferred { event.deferred() } else { event })
}

async fn redrive(
    caller: Caller,
    PathOf(event): PathOf<String>,
    Body(Why { reason }): Body<Why>,
) -> Answered<RedrivenView> {
    Ok(Json(caller.operator.redrive(named(&event)?, &reason).await?))
}
