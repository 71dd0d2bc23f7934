//! Workflows, their versions, schedules.

use axum::Json;
use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_kernel_core::{App, Scope, VersionId, WorkflowKey};
use surefoot_operator::{
    ActivateVersion, DiffView, PublishedView, SchedulesView, Switch, SwitchedView,
    VersionDetailView, VersionsView, WhichVersion, WorkflowsView, schema,
};

use super::Answered;
use super::route::Route;
use super::verbs::SMALL_MAX_BYTES;
use crate::access::Caller;
use crate::request::{Body, Input, NameShape, PathOf, Query, maybe, named, one};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/workflows", "list_workflows", "The workflows of an app", list)
            .query::<WithinQuery>()
            .answers::<WorkflowsView>(),
        Route::get(
            "/workflows/{workflow}/versions",
            "list_versions",
            "The versions of a workflow, newest first",
            versions,
        )
        .query::<ScopeQuery>()
        .answers::<VersionsView>(),
        Route::post(
            "/workflows/{workflow}/activate",
            "activate_version",
            "Make a published version live",
            activate,
        )
        .body::<ActivateBody>()
        .answers::<PublishedView>(),
        Route::post(
            "/workflows/{workflow}/enable",
            "enable_workflow",
            "Switch a workflow, or one of its activations, on",
            enable,
        )
        .body::<SwitchBody>()
        .answers::<SwitchedView>(),
        Route::post(
            "/workflows/{workflow}/disable",
            "disable_workflow",
            "Switch a workflow, or one of its activations, off; it stays off whatever is published",
            disable,
        )
        .body::<SwitchBody>()
        .answers::<SwitchedView>(),
        Route::get(
            "/versions/{version}",
            "show_version",
            "A version with its source and its plan",
            version,
        )
        .answers::<VersionDetailView>(),
        Route::get("/diff", "diff_versions", "What differs between two versions", diff)
            .query::<DiffQuery>()
            .answers::<DiffView>(),
        Route::get("/schedules", "list_schedules", "The schedules of active versions", schedules)
            .query::<WithinQuery>()
            .answers::<SchedulesView>(),
    ]
}

/// Of which app, and maybe which of its scopes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WithinQuery {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Only there.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    scope: Option<Scope>,
}

/// Of which scope.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScopeQuery {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Where.
    #[serde(deserialize_with = "one")]
    #[schemars(with = "NameShape")]
    scope: Scope,
}

/// Which two versions.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiffQuery {
    /// The earlier one.
    #[serde(deserialize_with = "one")]
    #[schemars(with = "schema::VersionId")]
    before: VersionId,
    /// The later one.
    #[serde(deserialize_with = "one")]
    #[schemars(with = "schema::VersionId")]
    after: VersionId,
}

/// Which version becomes live.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ActivateBody {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Where.
    #[serde(deserialize_with = "one")]
    #[schemars(with = "NameShape")]
    scope: Scope,
    /// The version's number in its workflow.
    version: u64,
    /// The number of the version that you saw live; where another one is, nothing is changed.
    #[serde(default)]
    seen: Option<u64>,
    /// In your own words; stands in the audit.
    #[schemars(length(min = 1, max = 2000))]
    reason: String,
}

impl Input for ActivateBody {
    const MAX_BYTES: usize = SMALL_MAX_BYTES;
}

/// What is switched.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SwitchBody {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Where.
    #[serde(deserialize_with = "one")]
    #[schemars(with = "NameShape")]
    scope: Scope,
    /// The key of one activation; without it, all of the workflow.
    #[serde(default)]
    activation: Option<String>,
    /// In your own words; stands in the audit.
    #[schemars(length(min = 1, max = 2000))]
    reason: String,
}

impl Input for SwitchBody {
    const MAX_BYTES: usize = SMALL_MAX_BYTES;
}

async fn list(caller: Caller, Query(query): Query<WithinQuery>) -> Answered<WorkflowsView> {
    let app = caller.operator.known_app(query.app).await?;
    Ok(Json(caller.operator.workflows(&app, query.scope.as_ref()).await?))
}

async fn versions(
    caller: Caller,
    PathOf(workflow): PathOf<String>,
    Query(query): Query<ScopeQuery>,
) -> Answered<VersionsView> {
    let app = caller.operator.known_app(query.app).await?;
    Ok(Json(caller.operator.versions(&app, &query.scope, &named(&workflow)?).await?))
}

async fn activate(
    caller: Caller,
    PathOf(workflow): PathOf<String>,
    Body(body): Body<ActivateBody>,
) -> Answered<PublishedView> {
    let activate = ActivateVersion {
        app: caller.operator.known_app(body.app).await?,
        scope: body.scope,
        workflow: named(&workflow)?,
        revision: body.version,
        seen: body.seen,
        why: body.reason,
    };
    Ok(Json(caller.operator.activate(activate).await?))
}

async fn enable(
    caller: Caller,
    PathOf(workflow): PathOf<String>,
    Body(body): Body<SwitchBody>,
) -> Answered<SwitchedView> {
    switch(&caller, named(&workflow)?, body, true).await
}

async fn disable(
    caller: Caller,
    PathOf(workflow): PathOf<String>,
    Body(body): Body<SwitchBody>,
) -> Answered<SwitchedView> {
    switch(&caller, named(&workflow)?, body, false).await
}

async fn switch(
    caller: &Caller,
    workflow: WorkflowKey,
    body: SwitchBody,
    enabled: bool,
) -> Answered<SwitchedView> {
    let app = caller.operator.known_app(body.app).await?;
    let SwitchBody { scope, activation, reason: why, .. } = body;
    let switch = Switch { app, scope, workflow, activation, enabled, why };
    Ok(Json(caller.operator.switch(switch).await?))
}

async fn version(caller: Caller, PathOf(version): PathOf<String>) -> Answered<VersionDetailView> {
    Ok(Json(caller.operator.version(WhichVersion::Id(named(&version)?)).await?))
}

async fn diff(caller: Caller, Query(query): Query<DiffQuery>) -> Answered<DiffView> {
    let (before, after) = (WhichVersion::Id(query.before), WhichVersion::Id(query.after));
    Ok(Json(caller.operator.diff(before, after).await?))
}

async fn schedules(caller: Caller, Query(query): Query<WithinQuery>) -> Answered<SchedulesView> {
    let app = caller.operator.known_app(query.app).await?;
    Ok(Json(caller.operator.schedules(&app, query.scope.as_ref()).await?))
}
