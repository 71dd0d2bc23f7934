//! Events: those that nobody listens to, those whose dispatch failed, and the others.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use surefoot_kernel_core::{EventFilter, EventStatus};
use surefoot_operator::{ErrorKind, EventView, OperatorError};

use super::answer;
use super::frame::{Choice, Frame, Notice};
use super::text::Text;
use super::visitor::{Place, Visitor};
use super::words::{Badge, When, event_status};
use crate::request::EventType;

/// Rows of a page.
const ROWS: u32 = 50;

#[derive(Template)]
#[template(path = "events.html")]
struct Events {
    frame: Frame,
    apps: Vec<Choice>,
    app: String,
    scope: String,
    kind: String,
    statuses: Vec<Choice>,
    rows: Vec<Row>,
    empty: Text,
    next: Option<String>,
    may_act: bool,
}

struct Row {
    id: Text,
    kind: Text,
    scope: Text,
    key: Option<Text>,
    status: Badge,
    matched: u32,
    attempts: u32,
    error: Option<Text>,
    occurred: When,
    runs: Option<(usize, String)>,
    is_expired: bool,
    /// Where the form goes that dispatches it again.
    redrive: Option<String>,
}

pub(crate) async fn page(mut visitor: Visitor) -> Response {
    visitor.asked.only(&["scope", "type", "status", "cursor"]);
    match list(&mut visitor).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(error) => visitor.failed(&error),
    }
}

async fn list(visitor: &mut Visitor) -> Result<Events, OperatorError> {
    let place = Place::of(visitor).await?;
    let status = |word: &str| EventStatus::ALL.iter().find(|it| it.as_str() == word).copied();
    let status = visitor.asked.read("status", status);
    let mut filter = EventFilter {
        app: place.as_ref().map(|place| place.app.clone()),
        scope: place.as_ref().and_then(|place| place.scope.clone()),
        kind: visitor.asked.parse::<EventType>("type").map(|kind| kind.0),
        status,
        limit: ROWS,
        cursor: visitor.asked.text("cursor").map(str::to_owned),
    };
    let (mut notice, mut empty) = (None, Text::sentence(empty_of(status)));
    let listed = match visitor.operator().events(filter.clone()).await {
        Err(OperatorError::NotACursor) => {
            notice = Some("That page is not one of this list: here is the first one.");
            filter.cursor = None;
            visitor.operator().events(filter.clone()).await
        }
        listed => listed,
    };
    let (events, next) = match listed {
        Ok(view) => (view.events, view.next),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            empty = Text::sentence(error.to_string());
            (Vec::new(), None)
        }
        Err(error) => return Err(error),
    };
    let text = |name| visitor.asked.text(name).unwrap_or_default().to_owned();
    let next = next.map(|cursor| {
        let names = ["app", "scope", "type", "status"];
        let page = names
            .into_iter()
            .fold(visitor.to("/events"), |page, name| page.maybe(name, visitor.asked.text(name)));
        page.with("cursor", &cursor).done()
    });
    let mut frame = Frame::of(visitor, "Events", "Events");
    if let Some(notice) = notice {
        frame = frame.notice(Notice::plain(notice));
    }
    let chosen =
        |it: &EventStatus| Choice::new(it.as_str(), event_status(*it).word, status == Some(*it));
    Ok(Events {
        frame,
        apps: place.as_ref().map(Choice::apps).unwrap_or_default(),
        app: place.as_ref().map(|place| place.app.as_str().to_owned()).unwrap_or_default(),
        scope: text("scope"),
        kind: text("type"),
        statuses: EventStatus::ALL.iter().map(chosen).collect(),
        rows: events.iter().map(|event| row(visitor, event)).collect(),
        empty,
        next,
        may_act: visitor.may_act(),
    })
}

fn empty_of(status: Option<EventStatus>) -> &'static str {
    match status {
        None => "No event fits.",
        Some(EventStatus::Pending) => "No event waits for its runs.",
        Some(EventStatus::Dispatched) => "No event was dispatched yet.",
        Some(EventStatus::Unmatched) => "Every event has somebody who listens to it.",
        Some(EventStatus::Retrying) => "No dispatch is being tried again.",
        Some(EventStatus::DeadLettered) => {
            "There are no dead letters: every dispatch went through."
        }
    }
}

fn row(visitor: &Visitor, event: &EventView) -> Row {
    let id = event.id.to_string();
    let known = EventStatus::ALL.iter().find(|status| status.as_str() == event.status).copied();
    let status = known.unwrap_or(EventStatus::Pending);
    let runs =
        visitor.to("/runs").maybe("app", visitor.asked.text("app")).with("event", &id).done();
    let is_dead = status == EventStatus::DeadLettered && !event.expired;
    Row {
        redrive: is_dead.then(|| visitor.to("/events").segment(&id).done() + "/redrive"),
        id: Text::name(id),
        kind: Text::name(&event.kind),
        scope: Text::name(event.scope.as_str()),
        key: event.key.as_ref().map(Text::name),
        status: event_status(status),
        matched: event.matched,
        attempts: event.attempts,
        error: event.error.as_ref().map(Text::sentence),
        occurred: When::of(event.occurred_at, visitor.now),
        runs: (!event.runs.is_empty()).then_some((event.runs.len(), runs)),
        is_expired: event.expired,
    }
}
