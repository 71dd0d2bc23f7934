//! The list of runs: filtered by the store, page by page.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use surefoot_kernel_core::{
    EventId, Micros, Mode, RunFilter, RunId, RunState, Timestamp, WorkflowKey,
};
use surefoot_operator::{ErrorKind, OperatorError, RunView, VerdictsView};

use super::address::Address;
use super::answer;
use super::frame::{Choice, Frame, Notice};
use super::text::Text;
use super::visitor::{Place, Visitor};
use super::words::{Badge, When, run_state};
use crate::request::Tag;

/// Rows of a page.
pub(crate) const ROWS: u32 = 50;
/// Words for a time to begin at, with their seconds.
const SINCE: &[(&str, &str, i64)] = &[
    ("1h", "last hour", 3_600),
    ("24h", "last 24 hours", 86_400),
    ("7d", "last 7 days", 7 * 86_400),
    ("30d", "last 30 days", 30 * 86_400),
];

#[derive(Template)]
#[template(path = "runs.html")]
struct Runs {
    frame: Frame,
    filter: Filter,
    rows: Vec<Row>,
    first: Option<String>,
    next: Option<String>,
    /// Why there is nothing.
    empty: Text,
    /// Of a list of failed runs: the form to try them again.
    retry: Option<Bulk>,
}

/// The form above the list, as it was filled.
struct Filter {
    apps: Vec<Choice>,
    scope: String,
    workflow: String,
    states: Vec<(Badge, &'static str, bool)>,
    modes: Vec<Choice>,
    since: Vec<Choice>,
    event: String,
    tag: String,
    parent: String,
    is_set: bool,
    clear: String,
}

/// Retrying a page of failed runs.
struct Bulk {
    action: String,
    /// As they are shown.
    runs: Vec<String>,
    count: usize,
}

/// A run.
pub(crate) struct Row {
    pub(crate) href: String,
    pub(crate) id: Text,
    pub(crate) workflow: Text,
    pub(crate) version: u64,
    pub(crate) place: Text,
    pub(crate) state: Badge,
    pub(crate) is_dry: bool,
    pub(crate) created: When,
    pub(crate) took: Option<String>,
    pub(crate) error: Option<(Text, Text)>,
}

impl Row {
    pub(crate) fn of(visitor: &Visitor, run: &RunView) -> Self {
        let id = run.id.to_string();
        let took = run.started_at.map(|from| {
            let until = run.finished_at.map_or(visitor.now, |at| at.0);
            surefoot_kernel_core::span_in_words(until.since(from.0))
        });
        let error = run.error.as_ref();
        Self {
            href: visitor.to("/runs").segment(&id).done(),
            id: Text::name(id),
            workflow: Text::name(run.workflow.as_str()),
            version: run.version,
            place: Text::name(format!("{}/{}", run.app, run.scope)),
            state: run_state(run.state),
            is_dry: run.mode == Mode::DryRun,
            created: When::of(run.created_at, visitor.now),
            took,
            error: error.map(|it| (Text::name(it.code.as_str()), Text::name(&it.message))),
        }
    }
}

pub(crate) async fn page(mut visitor: Visitor) -> Response {
    visitor
        .asked
        .only(&["scope", "workflow", "state", "mode", "since", "parent", "event", "tag", "cursor"]);
    match list(&mut visitor).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(error) => visitor.failed(&error),
    }
}

async fn list(visitor: &mut Visitor) -> Result<Runs, OperatorError> {
    let place = Place::of(visitor).await?;
    let mut wanted = wanted(visitor, place.as_ref());
    wanted.cursor = visitor.asked.text("cursor").map(str::to_owned);
    let (mut notice, mut empty) = (None, empty_of(&wanted));
    let listed = match visitor.operator().runs(wanted.clone()).await {
        Err(OperatorError::NotACursor) => {
            notice = Some("That page is not one of this list: here is the first one.");
            wanted.cursor = None;
            visitor.operator().runs(wanted.clone()).await
        }
        listed => listed,
    };
    let (runs, next) = match listed {
        Ok(view) => (view.runs, view.next),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            empty = Text::sentence(error.to_string());
            (Vec::new(), None)
        }
        Err(error) => return Err(error),
    };
    let address = address_of(visitor, &wanted);
    let first = wanted.cursor.is_some().then(|| address.clone().done());
    let live = live_of(visitor, &wanted);
    let rows: Vec<Row> = runs.iter().map(|run| Row::of(visitor, run)).collect();
    let retry = bulk(visitor, &wanted, &runs);
    let mut frame = Frame::of(visitor, "Runs", "Runs");
    // Of an empty store nothing can be followed.
    if wanted.app.is_some() {
        frame = frame.live(live);
    }
    if let Some(notice) = notice {
        frame = frame.notice(Notice::plain(notice));
    }
    let filter = filter_of(visitor, place.as_ref(), &wanted);
    let next = next.map(|cursor| address.with("cursor", &cursor).done());
    Ok(Runs { frame, filter, rows, first, next, empty, retry })
}

/// What the address asks for.
fn wanted(visitor: &mut Visitor, place: Option<&Place>) -> RunFilter {
    let since = visitor.asked.text("since").map(str::to_owned);
    let since = since.as_deref().and_then(|given| {
        let word = SINCE.iter().find(|(word, _, _)| *word == given);
        let ago = word.map(|(_, _, secs)| {
            let micros = visitor.now.micros().saturating_sub(Micros::from_secs(*secs).get());
            Timestamp::from_micros(micros)
        });
        let since = ago.or_else(|| given.parse().ok());
        if since.is_none() {
            visitor.asked.unknown.push(format!("since={given}"));
        }
        since
    });
    let known = |word: &str| RunState::ALL.iter().find(|state| state.as_str() == word).copied();
    let given: Vec<String> = visitor.asked.all("state").map(str::to_owned).collect();
    let mut states = Vec::new();
    for word in given {
        match known(word.trim()) {
            Some(state) => states.push(state),
            None => visitor.asked.unknown.push(format!("state={word}")),
        }
    }
    let mode =
        |word: &str| [Mode::Execute, Mode::DryRun].into_iter().find(|it| it.as_str() == word);
    // Whoever looks for what went wrong looks for children too, since the numbers of the overview count them.
    let is_trouble =
        |state: &RunState| matches!(state, RunState::NeedsAttention | RunState::Failed);
    let children = states.iter().any(is_trouble);
    RunFilter {
        app: place.map(|place| place.app.clone()),
        scope: place.and_then(|place| place.scope.clone()),
        workflow: visitor.asked.parse::<WorkflowKey>("workflow"),
        states,
        mode: visitor.asked.read("mode", mode),
        since,
        parent: visitor.asked.parse::<RunId>("parent"),
        event: visitor.asked.parse::<EventId>("event"),
        tag: visitor.asked.parse::<Tag>("tag").map(|tag| tag.0),
        children,
        limit: ROWS,
        cursor: None,
    }
}

/// The same list again, without its page.
fn address_of(visitor: &Visitor, wanted: &RunFilter) -> Address {
    filtered(visitor.to("/runs"), visitor, wanted)
}

fn filtered(address: Address, visitor: &Visitor, wanted: &RunFilter) -> Address {
    let mut address = address
        .maybe("app", wanted.app.as_ref().map(surefoot_kernel_core::App::as_str))
        .maybe("scope", wanted.scope.as_ref().map(surefoot_kernel_core::Scope::as_str))
        .maybe("workflow", wanted.workflow.as_ref().map(WorkflowKey::as_str));
    for state in &wanted.states {
        address = address.with("state", state.as_str());
    }
    address
        .maybe("mode", wanted.mode.map(Mode::as_str))
        .maybe("since", wanted.since.and(visitor.asked.text("since")))
        .maybe("event", wanted.event.map(|it| it.to_string()))
        .maybe("tag", wanted.tag.as_deref())
        .maybe("parent", wanted.parent.map(|it| it.to_string()))
}

/// Where it is heard that the list changed.
fn live_of(visitor: &Visitor, wanted: &RunFilter) -> String {
    let states: Vec<&str> = wanted.states.iter().map(|state| state.as_str()).collect();
    visitor
        .to("/api/v1/runs/live")
        .maybe("app", wanted.app.as_ref().map(surefoot_kernel_core::App::as_str))
        .maybe("scope", wanted.scope.as_ref().map(surefoot_kernel_core::Scope::as_str))
        .maybe("workflow", wanted.workflow.as_ref().map(WorkflowKey::as_str))
        .maybe("mode", wanted.mode.map(Mode::as_str))
        .with("state", &states.join(","))
        .done()
}

fn filter_of(visitor: &Visitor, place: Option<&Place>, wanted: &RunFilter) -> Filter {
    let states = RunState::ALL
        .iter()
        .map(|state| (run_state(*state), state.as_str(), wanted.states.contains(state)));
    let modes = [Mode::Execute, Mode::DryRun].map(|mode| {
        let label = if mode == Mode::Execute { "executions" } else { "dry runs" };
        Choice::new(mode.as_str(), label, wanted.mode == Some(mode))
    });
    let asked = wanted.since.and(visitor.asked.text("since")).unwrap_or_default();
    let mut since: Vec<Choice> =
        SINCE.iter().map(|(word, label, _)| Choice::new(word, label, *word == asked)).collect();
    if !asked.is_empty() && !since.iter().any(|choice| choice.is_chosen) {
        since.push(Choice::new(asked, asked, true));
    }
    let text = |text: Option<String>| text.unwrap_or_default();
    let app = wanted.app.as_ref().map(surefoot_kernel_core::App::as_str);
    let bare =
        RunFilter { app: wanted.app.clone(), limit: ROWS, cursor: None, ..RunFilter::default() };
    Filter {
        apps: place.map(Choice::apps).unwrap_or_default(),
        scope: text(wanted.scope.as_ref().map(|it| it.as_str().to_owned())),
        workflow: text(wanted.workflow.as_ref().map(|it| it.as_str().to_owned())),
        states: states.collect(),
        modes: modes.into(),
        since,
        event: text(wanted.event.map(|it| it.to_string())),
        tag: text(wanted.tag.clone()),
        parent: text(wanted.parent.map(|it| it.to_string())),
        is_set: RunFilter { cursor: None, ..wanted.clone() } != bare,
        clear: visitor.to("/runs").maybe("app", app).done(),
    }
}

fn bulk(visitor: &Visitor, wanted: &RunFilter, shown: &[RunView]) -> Option<Bulk> {
    let is_failed = wanted.states == [RunState::Failed];
    if !is_failed || shown.is_empty() || !visitor.may_act() {
        return None;
    }
    let runs = shown.iter().map(|run| format!("{}@{}", run.id, run.revision)).collect();
    Some(Bulk { action: visitor.to("/runs/retry").done(), runs, count: shown.len() })
}

fn empty_of(wanted: &RunFilter) -> Text {
    let text = if wanted.cursor.is_some() {
        "There are no more runs."
    } else if wanted.app.is_none() {
        "The store is empty: publish a workflow and emit an event."
    } else {
        "No run fits. Children are listed with their parent only; look also whether a filter is too narrow."
    };
    Text::sentence(text)
}

#[derive(Template)]
#[template(path = "verdicts.html")]
struct Verdicts {
    frame: Frame,
    rows: Vec<Verdict>,
    retried: usize,
    refused: usize,
}

struct Verdict {
    href: String,
    id: Text,
    state: Badge,
    refused: Option<Text>,
}

/// What became of each run of a page that was tried again.
pub(crate) fn verdicts(visitor: &Visitor, view: &VerdictsView) -> Response {
    let rows: Vec<Verdict> = view
        .verdicts
        .iter()
        .map(|verdict| Verdict {
            href: visitor.to("/runs").segment(&verdict.run.to_string()).done(),
            id: Text::name(verdict.run.to_string()),
            state: run_state(verdict.state),
            refused: verdict.refused.as_ref().map(Text::sentence),
        })
        .collect();
    let refused = rows.iter().filter(|row| row.refused.is_some()).count();
    let retried = rows.len() - refused;
    let frame = Frame::of(visitor, "Retried", "Runs");
    answer::page(StatusCode::OK, &Verdicts { frame, rows, retried, refused })
}
