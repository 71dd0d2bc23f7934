//! Who did what.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use surefoot_operator::{AuditRowView, ErrorKind, OperatorError};

use super::answer;
use super::frame::{Choice, Frame};
use super::text::Text;
use super::visitor::{Place, Visitor};
use super::words::When;

/// Rows of the list.
const ROWS: u32 = 200;

#[derive(Template)]
#[template(path = "audit.html")]
struct Audit {
    frame: Frame,
    apps: Vec<Choice>,
    scope: String,
    rows: Vec<Row>,
    empty: Text,
    is_cut: bool,
}

struct Row {
    at: When,
    actor: Text,
    verb: Text,
    reason: Text,
    scope: Text,
    run: Option<(Text, String)>,
    workflow: Option<Text>,
    step: Option<Text>,
    details: Option<Text>,
}

pub(crate) async fn page(mut visitor: Visitor) -> Response {
    visitor.asked.only(&["scope"]);
    match list(&mut visitor).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(error) => visitor.failed(&error),
    }
}

async fn list(visitor: &mut Visitor) -> Result<Audit, OperatorError> {
    let place = Place::of(visitor).await?;
    let mut empty = Text::sentence(
        "Nobody has done anything here yet: what operators do stands here, with their reasons.",
    );
    let mut rows = Vec::new();
    if let Some(place) = &place {
        match visitor.operator().audit(&place.app, place.scope.as_ref(), ROWS).await {
            Ok(view) => rows = view.audit.iter().map(|it| row(visitor, it)).collect(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                empty = Text::sentence(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    let frame = Frame::of(visitor, "Audit", "Audit");
    let apps = place.as_ref().map(Choice::apps).unwrap_or_default();
    let scope = visitor.asked.text("scope").unwrap_or_default().to_owned();
    let is_cut = rows.len() >= ROWS as usize;
    Ok(Audit { frame, apps, scope, rows, empty, is_cut })
}

fn row(visitor: &Visitor, it: &AuditRowView) -> Row {
    let run = it.run.map(|run| run.to_string());
    let workflow = it.workflow.as_ref().map(|key| match it.revision {
        Some(revision) => Text::name(format!("{key} version {revision}")),
        None => Text::name(key.as_str()),
    });
    Row {
        at: When::of(it.at, visitor.now),
        actor: Text::name(&it.actor),
        verb: Text::name(&it.verb),
        reason: Text::sentence(&it.reason),
        scope: Text::name(it.scope.as_str()),
        run: run.map(|id| (Text::name(&id), visitor.to("/runs").segment(&id).done())),
        workflow,
        step: it.step.as_ref().map(|step| Text::name(step.as_str())),
        details: says_something(&it.details).then(|| Text::sentence(it.details.to_string())),
    }
}

fn says_something(details: &serde_json::Value) -> bool {
    !details.is_null() && details.as_object().is_none_or(|details| !details.is_empty())
}
