//! Signals and effects: what runs wait for, and what waits for people.

use axum::Json;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surefoot_kernel_core::{App, Micros, Scope, Signal};
use surefoot_operator::{EffectsView, SendTo, SignalSentView, SignalsView};

use super::Answered;
use super::route::Route;
use crate::access::Caller;
use crate::problem::Problem;
use crate::request::{Body, Input, Limit, NameShape, Query, maybe};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/effects",
            "list_effects",
            "Effects that nobody can explain yet, oldest first",
            effects,
        )
        .query::<EffectsQuery>()
        .answers::<EffectsView>(),
        Route::get("/signals", "list_signals", "Signals that no run has used, oldest first", list)
            .query::<PlaceQuery>()
            .answers::<SignalsView>(),
        Route::post(
            "/signals",
            "send_signal",
            "Record a signal, once; wakes the runs that wait for it",
            send,
        )
        .body::<SignalBody>()
        .answers::<SignalSentView>(),
    ]
}

/// Of which place.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaceQuery {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    pub(super) app: Option<App>,
    /// Only there.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    pub(super) scope: Option<Scope>,
    /// At most so many.
    #[serde(default)]
    pub(super) limit: Limit,
}

/// Which effects.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EffectsQuery {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Only there.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    scope: Option<Scope>,
    /// Only those that are at least so old, like `5m`.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<String>")]
    older_than: Option<Micros>,
    /// At most so many.
    #[serde(default)]
    limit: Limit,
}

/// What occurred.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignalBody {
    /// Whose; may be left out where the store holds one app.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    app: Option<App>,
    /// Where; needed unless it is app-wide.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<NameShape>")]
    scope: Option<Scope>,
    /// To the app as a whole; `waitFor` does not see it.
    #[serde(default)]
    app_wide: bool,
    /// What sort of signal.
    #[schemars(length(min = 1, max = 200))]
    kind: String,
    /// Which one.
    #[schemars(length(min = 1, max = 500))]
    key: String,
    /// Its data.
    #[serde(default)]
    data: Value,
}

impl Input for SignalBody {
    const MAX_BYTES: usize = 512 * 1024;
}

async fn effects(caller: Caller, Query(query): Query<EffectsQuery>) -> Answered<EffectsView> {
    let app = caller.operator.known_app(query.app).await?;
    let older_than = query.older_than.unwrap_or(Micros::from_secs(0));
    let view = caller.operator.effects(&app, query.scope.as_ref(), older_than, query.limit.0);
    Ok(Json(view.await?))
}

async fn list(caller: Caller, Query(query): Query<PlaceQuery>) -> Answered<SignalsView> {
    let app = caller.operator.known_app(query.app).await?;
    Ok(Json(caller.operator.signals(&app, query.scope.as_ref(), query.limit.0).await?))
}

async fn send(caller: Caller, Body(body): Body<SignalBody>) -> Answered<SignalSentView> {
    let to = match (body.scope, body.app_wide) {
        (Some(scope), false) => SendTo::Scope(scope),
        (None, true) => SendTo::App,
        (Some(_), true) | (None, false) => {
            return Err(Problem::bad_request("name a `scope`, or set `app_wide`: one of the two"));
        }
    };
    let app = caller.operator.known_app(body.app).await?;
    let signal = Signal::new(body.kind, body.key).data(body.data);
    Ok(Json(caller.operator.signal(app, to, signal).await?))
}
