//! Health at a glance, and how many runs there were lately.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use surefoot_kernel_core::{Micros, RunState};
use surefoot_operator::{AppHealthView, OperatorError, TimelineOf, TimelineView, WorkerHealthView};

use super::answer;
use super::frame::{Choice, Frame};
use super::svg::Chart;
use super::text::Text;
use super::visitor::{Place, Visitor};
use super::words::{Badge, count, millis, run_state};

/// Columns of the charts.
const SLICES: u32 = 60;
/// Spans to choose from: the word in the address, the label, seconds.
const SPANS: &[(&str, &str, i64)] = &[
    ("1h", "last hour", 3_600),
    ("24h", "last 24 hours", 86_400),
    ("7d", "last 7 days", 7 * 86_400),
];

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    apps: Vec<Choice>,
    health: Option<Health>,
}

struct Health {
    app: Text,
    is_ok: bool,
    red: Vec<Text>,
    notes: Vec<Text>,
    states: Vec<StateCount>,
    figures: Vec<Figure>,
    spans: Vec<Choice>,
    runs: Chart,
    lag: Chart,
    total: String,
    failed: String,
    worst_lag: String,
    from: String,
    until: String,
    workers: Vec<Worker>,
    missing: Vec<Text>,
}

struct StateCount {
    badge: Badge,
    count: String,
    href: String,
}

/// A number with its meaning.
struct Figure {
    label: &'static str,
    value: String,
    /// What it says, or where it leads.
    about: String,
    href: Option<String>,
    is_red: bool,
}

struct Worker {
    name: Text,
    mode: &'static str,
    is_live: bool,
    seen: String,
    slots: String,
    stuck: u32,
}

pub(crate) async fn page(mut visitor: Visitor) -> Response {
    visitor.asked.only(&["span"]);
    match overview(&mut visitor).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(error) => visitor.failed(&error),
    }
}

async fn overview(visitor: &mut Visitor) -> Result<Overview, OperatorError> {
    let place = Place::of(visitor).await?;
    let known = |word: &str| SPANS.iter().find(|(known, _, _)| *known == word);
    let span = visitor.asked.read("span", known).unwrap_or(&SPANS[0]);
    let Some(place) = place else {
        let frame = Frame::of(visitor, "Overview", "Overview");
        return Ok(Overview { frame, apps: Vec::new(), health: None });
    };
    let of = TimelineOf {
        app: place.app.clone(),
        scope: None,
        span: Micros::from_secs(span.2),
        slices: SLICES,
    };
    // Both count what there is: neither waits for the other.
    let (seen, timeline) = tokio::try_join!(
        visitor.operator().health(Some(place.app.clone()), Some(visitor.now)),
        visitor.operator().timeline(of),
    )?;
    let health = seen.apps.first().map(|app| health(visitor, app, &timeline, span.0));
    let live = visitor.to("/api/v1/runs/live").with("app", place.app.as_str()).done();
    let frame = Frame::of(visitor, "Overview", "Overview").live(live);
    Ok(Overview { frame, apps: Choice::apps(&place), health })
}

fn health(visitor: &Visitor, app: &AppHealthView, timeline: &TimelineView, span: &str) -> Health {
    let in_state = |state: RunState| app.runs.get(state.as_str()).copied().unwrap_or_default();
    let runs = |state: RunState| {
        visitor.to("/runs").with("app", app.app.as_str()).with("state", state.as_str()).done()
    };
    let states = RunState::ALL.iter().map(|state| StateCount {
        badge: run_state(*state),
        count: count(in_state(*state)),
        href: runs(*state),
    });
    let of = |state: RunState| {
        let each = timeline.slices.iter().filter_map(|slice| slice.by_state.get(state.as_str()));
        count(each.sum())
    };
    let worst = timeline.slices.iter().filter_map(|slice| slice.worst_lag_ms).max();
    let text =
        |at: surefoot_operator::At| at.to_string().replacen('T', " ", 1).chars().take(16).collect();
    let missing = app.missing_modules.iter().map(|it| {
        let lacks = it.lacks.join(", ");
        Text::sentence(format!("{}: {lacks}; {} runs are due for it", it.module, it.due_runs))
    });
    Health {
        app: Text::name(app.app.as_str()),
        is_ok: app.ok,
        red: app.red.iter().map(Text::sentence).collect(),
        notes: app.notes.iter().map(Text::sentence).collect(),
        states: states.collect(),
        figures: figures(visitor, app),
        spans: SPANS
            .iter()
            .map(|(word, label, _)| Choice::new(word, label, *word == span))
            .collect(),
        runs: Chart::runs(timeline),
        lag: Chart::lag(timeline),
        total: count(timeline.total),
        failed: of(RunState::Failed),
        worst_lag: worst.map_or_else(|| "nothing was claimed".to_owned(), millis),
        from: text(timeline.from),
        until: text(timeline.until),
        workers: app.workers.iter().map(worker).collect(),
        missing: missing.collect(),
    }
}

fn figures(visitor: &Visitor, app: &AppHealthView) -> Vec<Figure> {
    let to = |path: &str| visitor.to(path).with("app", app.app.as_str());
    let (events, age) = (&app.events, |ms: Option<i64>| ms.map(millis));
    let oldest = |ms| age(ms).map_or_else(|| "none".to_owned(), |age| format!("oldest {age}"));
    vec![
        Figure {
            label: "Start lag now",
            value: if app.oldest_due_at.is_some() {
                millis(app.start_lag_ms)
            } else {
                "–".to_owned()
            },
            about: "how long the oldest run that is due has waited".to_owned(),
            href: None,
            is_red: app.start_lag_ms > 60_000,
        },
        Figure {
            label: "Unexplained effects",
            value: count(app.unsettled_effects),
            about: oldest(app.oldest_unsettled_ms),
            href: Some(to("/effects").done()),
            is_red: app.oldest_unsettled_ms.is_some_and(|ms| ms > 900_000),
        },
        Figure {
            label: "Outputs missing",
            value: count(app.outputs_missing),
            about: format!("{} given up without knowing", count(app.effects_given_up)),
            href: Some(to("/effects").done()),
            is_red: app.outputs_missing > 0,
        },
        Figure {
            label: "Events pending",
            value: count(events.pending),
            about: oldest(events.oldest_pending_ms),
            href: Some(to("/events").with("status", "pending").done()),
            is_red: events.oldest_pending_ms.is_some_and(|ms| ms > 60_000),
        },
        Figure {
            label: "Dead letters",
            value: count(events.dead_lettered),
            about: match events.unmatched {
                1 => "1 event that nobody listens to".to_owned(),
                more => format!("{} events that nobody listens to", count(more)),
            },
            href: Some(to("/events").with("status", "dead_lettered").done()),
            is_red: events.dead_lettered > 0,
        },
        Figure {
            label: "Exhausted runs",
            value: count(app.exhausted),
            about: "failed after every try that their policy gives".to_owned(),
            href: Some(to("/runs").with("state", "failed").done()),
            is_red: false,
        },
    ]
}

fn worker(worker: &WorkerHealthView) -> Worker {
    Worker {
        name: Text::name(&worker.name),
        mode: worker.mode.as_str(),
        is_live: worker.live,
        seen: format!("{} ago", millis(worker.seen_ms)),
        slots: format!("{} of {}", worker.busy, worker.slots),
        stuck: worker.stuck,
    }
}
