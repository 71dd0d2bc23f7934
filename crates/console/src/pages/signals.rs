//! Signals that no run has used.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use surefoot_operator::{ErrorKind, OperatorError};

use super::answer;
use super::frame::{Choice, Frame};
use super::text::Text;
use super::visitor::{Place, Visitor};
use super::words::{When, millis};

/// Rows of the list.
const ROWS: u32 = 200;

#[derive(Template)]
#[template(path = "signals.html")]
struct Signals {
    frame: Frame,
    apps: Vec<Choice>,
    scope: String,
    rows: Vec<Row>,
    empty: Text,
}

struct Row {
    place: Text,
    kind: Text,
    key: Text,
    data: Text,
    recorded: When,
    age: String,
}

pub(crate) async fn page(mut visitor: Visitor) -> Response {
    visitor.asked.only(&["scope"]);
    match list(&mut visitor).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(error) => visitor.failed(&error),
    }
}

async fn list(visitor: &mut Visitor) -> Result<Signals, OperatorError> {
    let place = Place::of(visitor).await?;
    let mut empty = Text::sentence("Every signal was used: no run has missed one.");
    let mut signals = Vec::new();
    if let Some(place) = &place {
        match visitor.operator().signals(&place.app, place.scope.as_ref(), ROWS).await {
            Ok(view) => signals = view.signals,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                empty = Text::sentence(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    let now = visitor.now;
    let rows = signals.iter().map(|signal| Row {
        place: Text::name(signal.scope.as_ref().map_or("the app as a whole", |it| it.as_str())),
        kind: Text::name(&signal.kind),
        key: Text::name(&signal.key),
        data: Text::sentence(signal.data.to_string()),
        recorded: When::of(signal.recorded_at, now),
        age: millis(signal.age_ms),
    });
    let rows = rows.collect();
    let frame = Frame::of(visitor, "Signals", "Signals");
    let apps = place.as_ref().map(Choice::apps).unwrap_or_default();
    let scope = visitor.asked.text("scope").unwrap_or_default().to_owned();
    Ok(Signals { frame, apps, scope, rows, empty })
}
