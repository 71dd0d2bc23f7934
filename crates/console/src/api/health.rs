//! Health, checks, and who did what.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_kernel_core::{App, Micros, Scope, TIMELINE_MAX_SLICES};
use surefoot_operator::{AuditView, DoctorView, HealthView, TimelineOf, TimelineView};

use super::Answered;
use super::route::Route;
use super::signals::PlaceQuery;
use crate::access::Caller;
use crate::problem::Problem;
use crate::request::{NameShape, Query, maybe};
use crate::shared::Shared;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/health",
            "show_health",
            "Health per app; `ok` is false when one is red",
            health,
        )
        .query::<AppQuery>()
        .answers::<HealthView>(),
        Route::get(
            "/doctor",
            "check_store",
            "The store's settings, clocks, and what workers offer",
            doctor,
        )
        .answers::<DoctorView>(),
        Route::get(
            "/timeline",
            "show_timeline",
            "How many runs were created, and how long they waited, over time",
            timeline,
        )
        .query::<TimelineQuery>()
        .answers::<TimelineView>(),
        Route::get("/audit", "list_audit", "Who did what, newest first", audit)
            .query::<PlaceQuery>()
            .answers::<AuditView>(),
    ]
}

/// Of which app.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AppQuery {
    /// Only of this one.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
}

/// Which span, in how many parts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TimelineQuery {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Only there.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    scope: Option<Scope>,
    /// How long, up to now, like `24h`: that is the default.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<String>")]
    span: Option<Micros>,
    /// In how many slices; 48 where nothing is said.
    #[serde(default)]
    #[schemars(range(min = 1, max = TIMELINE_MAX_SLICES))]
    slices: Option<u32>,
}

const TIMELINE_SPAN: Micros = Micros::from_secs(24 * 3600);
const TIMELINE_SLICES: u32 = 48;

async fn timeline(caller: Caller, Query(query): Query<TimelineQuery>) -> Answered<TimelineView> {
    let slices = query.slices.unwrap_or(TIMELINE_SLICES);
    let span = query.span.unwrap_or(TIMELINE_SPAN);
    if !(1..=TIMELINE_MAX_SLICES).contains(&slices) {
        let why = format!("query parameter `slices`: {slices} is not 1 to {TIMELINE_MAX_SLICES}");
        return Err(Problem::bad_request(why));
    }
    let app = caller.operator.known_app(query.app).await?;
    let of = TimelineOf { app, scope: query.scope, span, slices };
    Ok(Json(caller.operator.timeline(of).await?))
}

async fn health(
    caller: Caller,
    State(shared): State<Shared>,
    Query(AppQuery { app }): Query<AppQuery>,
) -> Answered<HealthView> {
    Ok(Json(caller.operator.health(app, Some(shared.clock().wall())).await?))
}

async fn doctor(caller: Caller, State(shared): State<Shared>) -> Answered<DoctorView> {
    Ok(Json(caller.operator.doctor(shared.clock().wall()).await?))
}

async fn audit(caller: Caller, Query(query): Query<PlaceQuery>) -> Answered<AuditView> {
    let app = caller.operator.known_app(query.app).await?;
    Ok(Json(caller.operator.audit(&app, query.scope.as_ref(), query.limit.0).await?))
}
