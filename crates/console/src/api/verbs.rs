//! Acting on runs. Each takes the revision that was looked at as `If-Match`, and a reason; who asked stands in the audit.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surefoot_kernel_core::{
    App, Code, OUTPUT_MAX_BYTES, RunFilter, Scope, StepKey, Verdict, WorkflowKey,
};
use surefoot_operator::{Abandon, Cancel, Done, Reconcile, Resolve, Retry, VerdictsView};

use super::Answered;
use super::route::{OnRevision, Route};
use crate::access::Caller;
use crate::problem::Problem;
use crate::request::{
    Body, IfMatch, Input, Limit, NameShape, PathOf, Revisioned, Since, maybe, named, one_of,
};
use crate::shared::Shared;

/// A verdict's output, and what stands around it.
const RESOLVE_MAX_BYTES: usize = OUTPUT_MAX_BYTES + SMALL_MAX_BYTES;
/// A body without payloads.
pub(super) const SMALL_MAX_BYTES: usize = 64 * 1024;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "/runs/{run}/cancel",
            "cancel_run",
            "Cancel a run; `If-Match: *` wherever it stands",
            cancel,
        )
        .on_revision(OnRevision::SeenOrAny)
        .body::<Why>()
        .answers_revisioned::<Done>(),
        Route::post("/runs/{run}/retry", "retry_run", "Try a failed run again", retry)
            .on_revision(OnRevision::Seen)
            .body::<Why>()
            .answers_revisioned::<Done>(),
        Route::post("/runs/{run}/abandon", "abandon_run", "Give a run up", abandon)
            .on_revision(OnRevision::Seen)
            .body::<AbandonBody>()
            .answers_revisioned::<Done>(),
        Route::post(
            "/runs/{run}/steps/{step}/resolve",
            "resolve_effect",
            "Say what became of an effect that nobody could explain",
            resolve,
        )
        .on_revision(OnRevision::Seen)
        .body::<ResolveBody>()
        .answers_revisioned::<Done>(),
        Route::post(
            "/runs/{run}/steps/{step}/reconcile",
            "reconcile_effect",
            "Have a worker ask the provider again what became of an effect",
            reconcile,
        )
        .on_revision(OnRevision::Seen)
        .body::<Why>()
        .answers_revisioned::<Done>(),
        Route::post(
            "/runs/retry",
            "retry_runs",
            "Try one page of failed runs again, with a verdict for each",
            retry_all,
        )
        .body::<RetryAllBody>()
        .answers::<VerdictsView>(),
    ]
}

/// Why something is done.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Why {
    /// In your own words; stands in the audit.
    #[schemars(length(min = 1, max = 2000))]
    pub(super) reason: String,
}

impl Input for Why {
    const MAX_BYTES: usize = SMALL_MAX_BYTES;
}

/// To give a run up.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AbandonBody {
    /// In your own words; stands in the audit.
    #[schemars(length(min = 1, max = 2000))]
    reason: String,
    /// Whether an effect that may have happened may stay unexplained; it stays listed.
    #[serde(default)]
    accept_unknown: bool,
}

impl Input for AbandonBody {
    const MAX_BYTES: usize = SMALL_MAX_BYTES;
}

/// What became of an effect.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResolveBody {
    /// In your own words; stands in the audit.
    #[schemars(length(min = 1, max = 2000))]
    reason: String,
    /// What is true.
    #[serde(deserialize_with = "one_of")]
    verdict: VerdictBody,
}

impl Input for ResolveBody {
    const MAX_BYTES: usize = RESOLVE_MAX_BYTES;
}

/// What is true of an effect: one of three.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum VerdictBody {
    /// It happened.
    Succeeded {
        /// What the action would have returned.
        output: Value,
    },
    /// The provider refused it.
    Failed {
        /// The run's error code from then on.
        #[serde(default)]
        code: Option<String>,
        /// What the provider said, for people.
        #[schemars(length(min = 1, max = 2000))]
        message: String,
    },
    /// It did not happen: it may be done.
    NotPerformed {},
}

impl From<VerdictBody> for Verdict {
    fn from(body: VerdictBody) -> Self {
        match body {
            VerdictBody::Succeeded { output } => Self::Succeeded { output },
            VerdictBody::Failed { code, message } => {
                Self::Failed { code: code.map(Code::from), message }
            }
            VerdictBody::NotPerformed {} => Self::NotPerformed,
        }
    }
}

/// Which failed runs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RetryAllBody {
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
    /// Only failed with this code.
    #[serde(default)]
    code: Option<String>,
    /// Only created since: an instant, or how long ago, like `2h`.
    #[serde(default, deserialize_with = "maybe")]
    #[schemars(with = "Option<String>")]
    since: Option<Since>,
    /// At most so many are looked at.
    #[serde(default)]
    limit: Limit,
    /// From the page before.
    #[serde(default)]
    cursor: Option<String>,
    /// In your own words; stands in the audit.
    #[schemars(length(min = 1, max = 2000))]
    reason: String,
}

impl Input for RetryAllBody {
    const MAX_BYTES: usize = SMALL_MAX_BYTES;
}

type Acted = Result<Revisioned<Done>, Problem>;

fn done(done: Done) -> Revisioned<Done> {
    Revisioned(done.run.revision, done)
}

async fn cancel(
    caller: Caller,
    PathOf(run): PathOf<String>,
    seen: IfMatch,
    Body(Why { reason }): Body<Why>,
) -> Acted {
    let cancel = Cancel { run: named(&run)?, seen: seen.if_any(), why: reason };
    Ok(done(caller.operator.cancel(cancel).await?))
}

async fn retry(
    caller: Caller,
    PathOf(run): PathOf<String>,
    seen: IfMatch,
    Body(Why { reason }): Body<Why>,
) -> Acted {
    let retry = Retry { run: named(&run)?, seen: seen.revision()?, why: reason };
    Ok(done(caller.operator.retry(retry).await?))
}

async fn abandon(
    caller: Caller,
    PathOf(run): PathOf<String>,
    seen: IfMatch,
    Body(AbandonBody { reason, accept_unknown }): Body<AbandonBody>,
) -> Acted {
    let (run, seen) = (named(&run)?, seen.revision()?);
    let abandon = Abandon { run, seen, accept_unknown, why: reason };
    Ok(done(caller.operator.abandon(abandon).await?))
}

async fn resolve(
    caller: Caller,
    PathOf((run, step)): PathOf<(String, String)>,
    seen: IfMatch,
    Body(ResolveBody { reason, verdict }): Body<ResolveBody>,
) -> Acted {
    let (run, seen) = (named(&run)?, seen.revision()?);
    let (step, verdict) = (StepKey::from(step), verdict.into());
    let resolve = Resolve { run, step, seen, verdict, why: reason };
    Ok(done(caller.operator.resolve(resolve).await?))
}

async fn reconcile(
    caller: Caller,
    PathOf((run, step)): PathOf<(String, String)>,
    seen: IfMatch,
    Body(Why { reason }): Body<Why>,
) -> Acted {
    let (run, seen) = (named(&run)?, seen.revision()?);
    let reconcile = Reconcile { run, step: StepKey::from(step), seen, why: reason };
    Ok(done(caller.operator.reconcile(reconcile).await?))
}

async fn retry_all(
    caller: Caller,
    State(shared): State<Shared>,
    Body(body): Body<RetryAllBody>,
) -> Answered<VerdictsView> {
    let filter = RunFilter {
        app: Some(caller.operator.known_app(body.app).await?),
        scope: body.scope,
        workflow: body.workflow,
        since: body.since.map(|since| since.instant(shared.clock())),
        limit: body.limit.0,
        cursor: body.cursor,
        ..RunFilter::default()
    };
    let code = body.code.map(Code::from);
    Ok(Json(caller.operator.retry_failed(filter, code.as_ref(), &body.reason).await?))
}
