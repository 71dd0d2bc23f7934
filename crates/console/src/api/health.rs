//! Health, checks, and who did what.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_kernel_core::App;
use surefoot_operator::{AuditView, DoctorView, HealthView};

use super::Answered;
use super::route::Route;
use super::signals::PlaceQuery;
use crate::access::Caller;
use crate::request::{Query, maybe};
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
    #[schemars(with = "Option<String>")]
    app: Option<App>,
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
