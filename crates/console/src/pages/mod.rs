//! The web console: pages that are made here, complete without a script.
//!
//! A page is a plain value (what is shown, in words) and a template beside it (how). Everything a person chose is in the
//! address; what an address says and this build does not know is left out, and the page says so.

mod act;
mod address;
mod answer;
mod assets;
mod audit;
mod diff;
mod effects;
mod events;
mod explained;
mod frame;
mod overview;
mod raw;
mod run;
mod runs;
mod schedules;
mod sign_in;
mod signals;
mod svg;
mod text;
mod version;
mod visitor;
mod words;
mod workflows;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};

use crate::shared::Shared;

/// Bytes of a form with a token and an address.
const SIGN_IN_MAX_BYTES: usize = 64 * 1024;

/// Every page, beside the API.
pub(crate) fn router() -> Router<Shared> {
    // Everybody may send this one.
    let sign_in_limit = DefaultBodyLimit::max(SIGN_IN_MAX_BYTES);
    Router::new()
        .route("/", get(overview::page))
        .route("/sign-in", get(sign_in::page).post(sign_in::enter).layer(sign_in_limit))
        .route("/sign-out", post(sign_in::leave))
        .route("/runs", get(runs::page))
        .route("/runs/retry", post(act::retry_listed))
        .route("/runs/{run}", get(run::page))
        .route("/runs/{run}/act", post(act::on_run))
        .route("/runs/{run}/raw/{what}", get(raw::page))
        .route("/effects", get(effects::page))
        .route("/events", get(events::page))
        .route("/events/{event}/redrive", post(act::redrive))
        .route("/signals", get(signals::page))
        .route("/workflows", get(workflows::list))
        .route("/workflow", get(workflows::one))
        .route("/workflow/switch", post(act::switch))
        .route("/workflow/activate", post(act::activate))
        .route("/versions/{version}", get(version::page))
        .route("/diff", get(diff::page))
        .route("/schedules", get(schedules::page))
        .route("/audit", get(audit::page))
        .route("/assets/{name}", get(assets::asset))
        .fallback(visitor::default_view)
}
