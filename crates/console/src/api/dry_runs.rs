//! Dry runs: what a version would do.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use surefoot_kernel_core::{
    App, EVENT_MAX_PAYLOAD_BYTES, Event, RunId, START_EVENT, Scope, WorkflowKey,
};
use surefoot_operator::{AskDryRun, BillView, schema};

use super::Answered;
use super::route::Route;
use super::verbs::SMALL_MAX_BYTES;
use crate::access::Caller;
use crate::request::{Body, Input, NameShape, PathOf, maybe, named, one};
use crate::shared::Shared;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "/dry-runs",
            "ask_dry_run",
            "Have a version previewed by a dry-run worker; nothing is done",
            ask,
        )
        .body::<AskBody>()
        .answers::<AskedView>(),
        Route::get("/dry-runs/{run}", "show_bill", "A dry run, and its bill once it is over", bill)
            .answers::<BillView>(),
    ]
}

/// Which version, with what event.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskBody {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Where.
    #[serde(deserialize_with = "one")]
    #[schemars(with = "NameShape")]
    scope: Scope,
    /// Which workflow.
    #[serde(deserialize_with = "one")]
    #[schemars(with = "NameShape")]
    workflow: WorkflowKey,
    /// Which of its revisions; by default the live one, else the newest.
    #[serde(default)]
    revision: Option<u64>,
    /// The type of the event that would occur; by default the workflow is started with `data` as its inputs.
    #[serde(default, rename = "type")]
    #[schemars(length(min = 1, max = 200))]
    kind: Option<String>,
    /// The event's data.
    #[serde(default)]
    data: Value,
    /// What every step may read as `context`.
    #[serde(default)]
    context: Value,
}

impl Input for AskBody {
    const MAX_BYTES: usize = 2 * EVENT_MAX_PAYLOAD_BYTES + SMALL_MAX_BYTES;
}

/// A dry run that was asked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct AskedView {
    /// The dry run.
    #[schemars(with = "schema::RunId")]
    run: RunId,
}

async fn ask(
    caller: Caller,
    State(shared): State<Shared>,
    Body(body): Body<AskBody>,
) -> Answered<AskedView> {
    let kind = body.kind.unwrap_or_else(|| START_EVENT.to_owned());
    let ask = AskDryRun {
        app: caller.operator.known_app(body.app).await?,
        scope: body.scope,
        workflow: body.workflow,
        revision: body.revision,
        event: Event::new(kind, body.data).context(body.context),
    };
    let run = caller.operator.dry_run(shared.ids(), ask).await?;
    Ok(Json(AskedView { run }))
}

async fn bill(caller: Caller, PathOf(run): PathOf<String>) -> Answered<BillView> {
    Ok(Json(caller.operator.bill(named(&run)?).await?))
}
