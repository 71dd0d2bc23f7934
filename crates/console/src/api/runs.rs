//! Looking at runs.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_kernel_core::{
    App, EventId, Explanation, Mode, RunFilter, RunId, RunState, Scope, WorkflowKey,
};
use surefoot_operator::{JournalView, RunsView, ShowView, StepsView, schema};

use super::Answered;
use super::route::Route;
use crate::access::Caller;
use crate::live::{follow_run, follow_runs};
use crate::problem::Problem;
use crate::request::{Limit, List, NameShape, PathOf, Query, Revisioned, Since, Tag, maybe, named};
use crate::shared::Shared;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/runs",
            "list_runs",
            "Runs, newest first; children only where they or their parent are asked for",
            list,
        )
        .query::<RunsQuery>()
        .answers::<RunsView>(),
        Route::get(
            "/runs/live",
            "follow_runs",
            "The first page of a list, whenever it changes",
            live_list,
        )
        .query::<LiveRunsQuery>(),
        Route::get("/runs/{run}", "show_run", "One run in detail", show)
            .answers_revisioned::<ShowView>(),
        Route::get(
            "/runs/{run}/explain",
            "explain_run",
            "Why a run stands where it stands, what happened, and what is safe to do",
            explain,
        )
        .answers_revisioned::<schema::Explanation>(),
        Route::get(
            "/runs/{run}/steps",
            "list_steps",
            "The steps that a run has come to, in order",
            steps,
        )
        .query::<PartQuery>()
        .answers::<StepsView>(),
        Route::get(
            "/runs/{run}/journal",
            "list_journal",
            "What was recorded of a run, in order",
            journal,
        )
        .query::<PartQuery>()
        .answers::<JournalView>(),
        Route::get(
            "/runs/{run}/live",
            "follow_run",
            "What becomes durable of a run: events `update`, at last `end`",
            live_run,
        )
        .query::<LiveRunQuery>(),
    ]
}

/// Which runs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunsQuery {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Only there.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    scope: Option<Scope>,
    /// Only of this workflow.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    workflow: Option<WorkflowKey>,
    /// Only in these states, separated by commas.
    #[serde(default)]
    state: List<RunState, schema::RunState>,
    /// Only of this mode.
    #[serde(default)]
    #[schemars(with = "Option<schema::Mode>")]
    mode: Option<Mode>,
    /// Only created since: an instant, or how long ago, like `2h`.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<String>")]
    since: Option<Since>,
    /// Whether children are listed beside the runs that have no parent. Those of a `parent` are listed anyway.
    #[serde(default)]
    children: Option<bool>,
    /// Children of this run.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<schema::RunId>")]
    parent: Option<RunId>,
    /// Only started by this event.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<schema::EventId>")]
    event: Option<EventId>,
    /// Only started by an event with this tag.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    tag: Option<Tag>,
    /// At most so many.
    #[serde(default)]
    limit: Limit,
    /// From the page before.
    #[serde(default)]
    cursor: Option<String>,
}

/// Which runs to follow.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LiveRunsQuery {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Only there.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    scope: Option<Scope>,
    /// Only of this workflow.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    workflow: Option<WorkflowKey>,
    /// Only in these states, separated by commas.
    #[serde(default)]
    state: List<RunState, schema::RunState>,
    /// Only of this mode.
    #[serde(default)]
    #[schemars(with = "Option<schema::Mode>")]
    mode: Option<Mode>,
    /// At most so many.
    #[serde(default)]
    limit: Limit,
}

/// Which part of a list.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PartQuery {
    /// At most so many.
    #[serde(default)]
    limit: Limit,
    /// From the page before.
    #[serde(default)]
    cursor: Option<String>,
}

/// From where to follow.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LiveRunQuery {
    /// How many facts were seen: `next` of what was sent. The header `Last-Event-ID` goes before it.
    #[serde(default)]
    after: u32,
}

async fn list(
    caller: Caller,
    State(shared): State<Shared>,
    Query(query): Query<RunsQuery>,
) -> Answered<RunsView> {
    if query.children == Some(false) && query.parent.is_some() {
        let why = "a `parent` asks for its children: leave out `children=false`";
        return Err(Problem::bad_request(why));
    }
    let filter = RunFilter {
        app: Some(caller.operator.known_app(query.app).await?),
        scope: query.scope,
        workflow: query.workflow,
        states: query.state.0,
        mode: query.mode,
        since: query.since.map(|since| since.instant(shared.clock())),
        parent: query.parent,
        event: query.event,
        tag: query.tag.map(|tag| tag.0),
        children: query.children.unwrap_or(false),
        limit: query.limit.0,
        cursor: query.cursor,
    };
    Ok(Json(caller.operator.runs(filter).await?))
}

async fn live_list(
    caller: Caller,
    State(shared): State<Shared>,
    Query(query): Query<LiveRunsQuery>,
) -> Result<Response, Problem> {
    let filter = RunFilter {
        app: Some(caller.operator.known_app(query.app).await?),
        scope: query.scope,
        workflow: query.workflow,
        states: query.state.0,
        mode: query.mode,
        limit: query.limit.0,
        ..RunFilter::default()
    };
    follow_runs(shared.live(), caller.operator, filter).await
}

async fn show(
    caller: Caller,
    PathOf(run): PathOf<String>,
) -> Result<Revisioned<ShowView>, Problem> {
    let view = caller.operator.show(named(&run)?).await?;
    Ok(Revisioned(view.run.revision, view))
}

async fn explain(
    caller: Caller,
    PathOf(run): PathOf<String>,
) -> Result<Revisioned<Explanation>, Problem> {
    let view = caller.operator.explain(named(&run)?).await?;
    Ok(Revisioned(view.revision, view))
}

async fn steps(
    caller: Caller,
    PathOf(run): PathOf<String>,
    Query(PartQuery { limit, cursor }): Query<PartQuery>,
) -> Answered<StepsView> {
    Ok(Json(caller.operator.steps(named(&run)?, cursor.as_deref(), limit.0).await?))
}

async fn journal(
    caller: Caller,
    PathOf(run): PathOf<String>,
    Query(PartQuery { limit, cursor }): Query<PartQuery>,
) -> Answered<JournalView> {
    Ok(Json(caller.operator.journal(named(&run)?, cursor.as_deref(), limit.0).await?))
}

async fn live_run(
    caller: Caller,
    State(shared): State<Shared>,
    PathOf(run): PathOf<String>,
    headers: HeaderMap,
    Query(LiveRunQuery { after }): Query<LiveRunQuery>,
) -> Result<Response, Problem> {
    let run: RunId = named(&run)?;
    // A browser that lost the stream says where it stood.
    let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let after: u32 = seen.unwrap_or(after);
    follow_run(shared.live(), caller.operator, run, after.into()).await
}
