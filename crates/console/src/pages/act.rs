//! What forms do: each goes through the operator's own use case, with the revision that was looked at and a reason, and
//! then leads to a page that only looks.

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;
use surefoot_kernel_core::payload::Payload;
use surefoot_kernel_core::{
    App, Code, EventId, RunId, Scope, Signal, StepKey, Verdict, WorkflowKey,
};
use surefoot_operator::{
    Abandon, ActivateVersion, Cancel, Operator, OperatorError, Outcome, Reconcile, Resolve, Retry,
    SendTo, Switch,
};

use super::address::Asked;
use super::answer;
use super::effects;
use super::run::{self, Refused};
use super::runs;
use super::visitor::{Named, Visitor, status_of};
use crate::trouble::Cause;

/// Why a form did nothing.
enum Undone {
    /// It was filled in a way that nobody can read.
    Form(String),
    Operator(OperatorError),
}

impl From<OperatorError> for Undone {
    fn from(error: OperatorError) -> Self {
        Self::Operator(error)
    }
}

impl Undone {
    fn form(text: impl Into<String>) -> Self {
        Self::Form(text.into())
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Form(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Operator(error) => status_of(error.kind()),
        }
    }

    /// With its cause beside it, for the log.
    fn beside(&self, response: Response) -> Response {
        match self {
            Self::Form(_) => response,
            Self::Operator(error) => Cause::of(error).beside(response),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Form(text) => text.clone(),
            Self::Operator(error) => error.to_string(),
        }
    }
}

/// The fields of a form, for somebody who may act; or the answer to somebody who may not.
fn form_of(visitor: &Visitor, body: &Bytes) -> Result<Asked, Box<Response>> {
    if visitor.may_act() {
        let odd = |why: String| {
            let text = format!("The form cannot be read: {why}. Nothing was changed.");
            Box::new(visitor.said(StatusCode::BAD_REQUEST, "That was not done", &text))
        };
        return Asked::of_form(body).map_err(odd);
    }
    let text = "You may look and change nothing: this takes the role of an operator.";
    Err(Box::new(visitor.said(StatusCode::FORBIDDEN, "Not allowed", text)))
}

/// Does one of the legal deeds on a run.
pub(crate) async fn on_run(Named(run): Named<String>, visitor: Visitor, body: Bytes) -> Response {
    let Ok(run) = run.parse::<RunId>() else {
        return answer::go_to(&visitor.to("/runs").with("unknown", "page").done());
    };
    let form = match form_of(&visitor, &body) {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    let is_from_effects = form.text("back") == Some("effects");
    match deed(visitor.operator(), run, &form).await {
        Ok(word) if is_from_effects => {
            answer::go_to(&visitor.to("/effects").with("done", word).done())
        }
        Ok(word) => {
            let page = visitor.to("/runs").segment(&run.to_string());
            answer::go_to(&page.with("done", word).done())
        }
        Err(undone) => {
            let refused = Refused { status: undone.status(), text: undone.text(), form: &form };
            let shown = if is_from_effects {
                effects::shown(visitor, Some(run), Some(refused)).await
            } else {
                run::shown(visitor, run, Some(refused)).await
            };
            undone.beside(shown)
        }
    }
}

async fn deed(operator: &Operator, run: RunId, form: &Asked) -> Result<&'static str, Undone> {
    let odd = || Undone::form("the form does not say which revision it was about");
    let seen = form.text("revision").and_then(|text| text.parse::<u64>().ok()).ok_or_else(odd)?;
    let why = form.text("reason").unwrap_or_default().to_owned();
    let step = || {
        let step = form.text("step").map(StepKey::from);
        step.ok_or_else(|| Undone::form("the form does not say which step it was about"))
    };
    let resolve = async |verdict: Verdict| -> Result<&'static str, Undone> {
        let resolve = Resolve { run, step: step()?, seen, verdict, why: why.clone() };
        Ok(word(operator.resolve(resolve).await?.outcome))
    };
    match form.text("deed").unwrap_or_default() {
        "succeeded" => {
            let output = json_of("the output", form.text("json").unwrap_or_default())?;
            resolve(Verdict::Succeeded { output }).await
        }
        "failed" => {
            let code = form.text("code").map(|code| Code::from(code.trim().to_owned()));
            let message = form.text("message").unwrap_or_default().to_owned();
            resolve(Verdict::Failed { code, message }).await
        }
        "not_performed" => resolve(Verdict::NotPerformed).await,
        "reconcile" => {
            let reconcile = Reconcile { run, step: step()?, seen, why };
            Ok(word(operator.reconcile(reconcile).await?.outcome))
        }
        "retry" => Ok(word(operator.retry(Retry { run, seen, why }).await?.outcome)),
        "cancel" => {
            let cancel = Cancel { run, seen: Some(seen), why };
            Ok(word(operator.cancel(cancel).await?.outcome))
        }
        deed @ ("abandon" | "abandon_unknown") => {
            let accept_unknown = deed == "abandon_unknown";
            let abandon = Abandon { run, seen, accept_unknown, why };
            Ok(word(operator.abandon(abandon).await?.outcome))
        }
        "signal" => send(operator, run, form).await,
        _ => Err(Undone::form("the form does not say what is to be done")),
    }
}

async fn send(operator: &Operator, run: RunId, form: &Asked) -> Result<&'static str, Undone> {
    let (kind, key) = (form.text("kind"), form.text("key"));
    let (Some(kind), Some(key)) = (kind, key) else {
        return Err(Undone::form("the form does not say which signal it was about"));
    };
    let data = form.text("json").map_or(Ok(Value::Null), |text| json_of("the data", text))?;
    let of = operator.show(run).await?.run;
    let to = if form.text("app_wide").is_some() { SendTo::App } else { SendTo::Scope(of.scope) };
    let sent = operator.signal(of.app, to, Signal::new(kind, key).data(data)).await?;
    Ok(if sent.new { "done" } else { "unchanged" })
}

/// What could not be kept exactly is refused with its place.
fn json_of(what: &str, text: &str) -> Result<Value, Undone> {
    Payload::parse(text).map(Payload::into_value).map_err(|error| {
        let place = if error.pointer.is_empty() {
            String::new()
        } else {
            format!(" at `{}`", error.pointer)
        };
        Undone::Form(format!("{what} is no JSON that can be kept{place}: {}", error.rule))
    })
}

const fn word(outcome: Outcome) -> &'static str {
    outcome.as_str()
}

/// Tries the failed runs of a page again, those that were shown and as they were shown; the answer has a verdict for each.
pub(crate) async fn retry_listed(visitor: Visitor, body: Bytes) -> Response {
    let form = match form_of(&visitor, &body) {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    let runs: Option<Vec<(RunId, u64)>> = form.all("run").map(as_shown).collect();
    let Some(runs) = runs.filter(|runs| (1..=runs::ROWS as usize).contains(&runs.len())) else {
        return undone(&visitor, &Undone::form("the form does not say which runs it was about"));
    };
    let why = form.text("reason").unwrap_or_default();
    match visitor.operator().retry_listed(&runs, why).await {
        Ok(verdicts) => runs::verdicts(&visitor, &verdicts),
        Err(error) => visitor.failed(&error),
    }
}

/// A run and the revision that was looked at.
fn as_shown(text: &str) -> Option<(RunId, u64)> {
    let (run, revision) = text.split_once('@')?;
    Some((run.parse().ok()?, revision.parse().ok()?))
}

/// Has the runs of a dead letter created after all.
pub(crate) async fn redrive(
    Named(event): Named<String>,
    visitor: Visitor,
    body: Bytes,
) -> Response {
    let form = match form_of(&visitor, &body) {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    let Ok(event) = event.parse::<EventId>() else {
        return answer::go_to(&visitor.to("/events").with("unknown", "page").done());
    };
    let why = form.text("reason").unwrap_or_default();
    match visitor.operator().redrive(event, why).await {
        Ok(_) => {
            let list = visitor.to("/events").maybe("app", form.text("app"));
            answer::go_to(&list.with("done", "redriven").done())
        }
        Err(error) => visitor.failed(&error),
    }
}

/// App, scope and workflow of a form.
fn place_of(form: &Asked) -> Result<(App, Scope, WorkflowKey), Undone> {
    let text = |name| form.text(name).unwrap_or_default();
    let odd = || Undone::form("the form does not say which workflow it was about");
    let app = text("app").parse::<App>().map_err(|_| odd())?;
    let scope = text("scope").parse::<Scope>().map_err(|_| odd())?;
    Ok((app, scope, text("workflow").parse::<WorkflowKey>().map_err(|_| odd())?))
}

/// Back to the workflow that a form was about.
fn workflow_page(visitor: &Visitor, form: &Asked, done: &str) -> Response {
    let page = visitor.to("/workflow");
    let page = ["app", "scope", "workflow"]
        .into_iter()
        .fold(page, |page, name| page.maybe(name, form.text(name)));
    answer::go_to(&page.with("done", done).done())
}

fn undone(visitor: &Visitor, undone: &Undone) -> Response {
    undone.beside(visitor.said(undone.status(), "That was not done", &undone.text()))
}

/// Switches an activation, or all of a workflow, on or off.
pub(crate) async fn switch(visitor: Visitor, body: Bytes) -> Response {
    let form = match form_of(&visitor, &body) {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    match switched(visitor.operator(), &form).await {
        Ok(word) => workflow_page(&visitor, &form, word),
        Err(error) => undone(&visitor, &error),
    }
}

async fn switched(operator: &Operator, form: &Asked) -> Result<&'static str, Undone> {
    let (app, scope, workflow) = place_of(form)?;
    let activation = form.text("activation").map(str::to_owned);
    let enabled = match form.text("enabled") {
        Some("true") => true,
        Some("false") => false,
        Some(_) | None => return Err(Undone::form("the form does not say whether on or off")),
    };
    let why = form.text("reason").unwrap_or_default().to_owned();
    let switch = Switch { app, scope, workflow, activation, enabled, why };
    let done = operator.switch(switch).await?;
    Ok(if done.changed.is_empty() { "unchanged" } else { "switched" })
}

/// Makes a stored version live.
pub(crate) async fn activate(visitor: Visitor, body: Bytes) -> Response {
    let form = match form_of(&visitor, &body) {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    match activated(visitor.operator(), &form).await {
        Ok(()) => workflow_page(&visitor, &form, "activated"),
        Err(error) => undone(&visitor, &error),
    }
}

async fn activated(operator: &Operator, form: &Asked) -> Result<(), Undone> {
    let (app, scope, workflow) = place_of(form)?;
    let number = |name| form.text(name).and_then(|text| text.parse::<u64>().ok());
    let revision = number("version");
    let revision = revision.ok_or_else(|| Undone::form("the form does not say which version"))?;
    let (seen, why) = (number("seen"), form.text("reason").unwrap_or_default().to_owned());
    let activate = ActivateVersion { app, scope, workflow, revision, seen, why };
    operator.activate(activate).await?;
    Ok(())
}
