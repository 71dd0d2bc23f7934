//! Schedules, and when each is due next.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use surefoot_operator::{ErrorKind, OperatorError, ScheduleView};

use super::answer;
use super::frame::{Choice, Frame};
use super::text::Text;
use super::visitor::{Place, Visitor};
use super::words::When;

#[derive(Template)]
#[template(path = "schedules.html")]
struct Schedules {
    frame: Frame,
    apps: Vec<Choice>,
    scope: String,
    rows: Vec<Row>,
    empty: Text,
}

struct Row {
    key: Text,
    cron: Text,
    timezone: Text,
    workflow: Text,
    href: String,
    scope: Text,
    enabled: bool,
    since: When,
    next: Option<When>,
}

pub(crate) async fn page(mut visitor: Visitor) -> Response {
    visitor.asked.only(&["scope"]);
    match list(&mut visitor).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(error) => visitor.failed(&error),
    }
}

async fn list(visitor: &mut Visitor) -> Result<Schedules, OperatorError> {
    let place = Place::of(visitor).await?;
    let mut empty = Text::sentence(
        "No live version has a schedule. One is written below `triggers`, as `schedule`.",
    );
    let mut rows = Vec::new();
    if let Some(place) = &place {
        match visitor.operator().schedules(&place.app, place.scope.as_ref()).await {
            Ok(view) => {
                rows = view.schedules.iter().map(|it| row(visitor, place, it)).collect();
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                empty = Text::sentence(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    let frame = Frame::of(visitor, "Schedules", "Schedules");
    let apps = place.as_ref().map(Choice::apps).unwrap_or_default();
    let scope = visitor.asked.text("scope").unwrap_or_default().to_owned();
    Ok(Schedules { frame, apps, scope, rows, empty })
}

fn row(visitor: &Visitor, place: &Place, it: &ScheduleView) -> Row {
    let page = visitor.to("/workflow").with("app", place.app.as_str());
    let page = page.with("scope", it.scope.as_str()).with("workflow", it.workflow.as_str());
    Row {
        key: Text::name(&it.key),
        cron: Text::name(&it.cron),
        timezone: Text::name(&it.timezone),
        workflow: Text::name(it.workflow.as_str()),
        href: page.done(),
        scope: Text::name(it.scope.as_str()),
        enabled: it.enabled,
        since: When::of(it.since, visitor.now),
        next: When::maybe(it.next_at, visitor.now),
    }
}
