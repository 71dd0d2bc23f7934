//! The queue of effects that nobody can explain yet, with the form that settles one.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use surefoot_kernel_core::{EffectState, Micros, RunId, RunState};
use surefoot_operator::{EffectView, ErrorKind, OperatorError};

use super::answer;
use super::explained::{Asks, Deeds, Explained};
use super::frame::{Choice, Frame, Notice};
use super::run::Refused;
use super::text::Text;
use super::visitor::{Place, Visitor};
use super::words::{Badge, When, effect_state, millis, run_state};

/// Rows of the list.
const ROWS: u32 = 200;
/// Ages to choose from: the word in the address, the label, seconds.
const AGES: &[(&str, &str, i64)] = &[
    ("1m", "older than a minute", 60),
    ("15m", "older than 15 minutes", 900),
    ("1h", "older than an hour", 3_600),
    ("24h", "older than a day", 86_400),
];

#[derive(Template)]
#[template(path = "effects.html")]
struct Effects {
    frame: Frame,
    apps: Vec<Choice>,
    scope: String,
    ages: Vec<Choice>,
    rows: Vec<Row>,
    is_cut: bool,
    empty: Text,
    open: Option<Open>,
}

struct Row {
    run: Text,
    run_href: String,
    workflow: Text,
    run_state: Badge,
    step: Text,
    action: Text,
    state: Badge,
    key: Text,
    since: When,
    age: String,
    settle: String,
    /// Whether a person has a word on it now.
    waits_for_person: bool,
    is_open: bool,
}

/// The run whose effect is being settled.
struct Open {
    run: Text,
    run_href: String,
    explained: Explained,
    deeds: Deeds,
    close: String,
}

pub(crate) async fn page(visitor: Visitor) -> Response {
    shown(visitor, None, None).await
}

/// The page, also where it says why a form was refused; `of` is the run that the form was about.
pub(crate) async fn shown(
    mut visitor: Visitor,
    of: Option<RunId>,
    refused: Option<Refused<'_>>,
) -> Response {
    visitor.asked.only(&["scope", "age", "open"]);
    let status = refused.as_ref().map_or(StatusCode::OK, |it| it.status);
    match queue(&mut visitor, of, refused).await {
        Ok(page) => answer::page(status, &page),
        Err(error) => visitor.failed(&error),
    }
}

async fn queue(
    visitor: &mut Visitor,
    of: Option<RunId>,
    refused: Option<Refused<'_>>,
) -> Result<Effects, OperatorError> {
    let place = Place::of(visitor).await?;
    let known = |word: &str| AGES.iter().find(|(known, _, _)| *known == word);
    let age = visitor.asked.read("age", known);
    let opened = of.or_else(|| visitor.asked.parse::<RunId>("open"));
    let older_than = Micros::from_secs(age.map_or(0, |(_, _, seconds)| *seconds));
    let (mut effects, mut empty) = (Vec::new(), Text::sentence(EMPTY));
    if let Some(place) = &place {
        let list = visitor.operator().effects(&place.app, place.scope.as_ref(), older_than, ROWS);
        match list.await {
            Ok(view) => effects = view.effects,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                empty = Text::sentence(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    let open = match opened {
        Some(run) => open(visitor, run, refused.as_ref()).await?,
        None => None,
    };
    let mut frame = Frame::of(visitor, "Effects", "Effects");
    if let Some(place) = &place {
        frame = frame.live(visitor.to("/api/v1/runs/live").with("app", place.app.as_str()).done());
    }
    if let Some(refused) = &refused {
        frame = frame.notice(Notice::bad(&refused.text));
    }
    let scope = place.as_ref().and_then(|place| place.scope.as_ref());
    Ok(Effects {
        frame,
        apps: place.as_ref().map(Choice::apps).unwrap_or_default(),
        scope: scope.map(|scope| scope.as_str().to_owned()).unwrap_or_default(),
        ages: AGES
            .iter()
            .map(|(word, label, _)| Choice::new(word, label, age.is_some_and(|it| it.0 == *word)))
            .collect(),
        is_cut: effects.len() >= ROWS as usize,
        rows: effects.iter().map(|effect| row(visitor, effect, opened)).collect(),
        empty,
        open,
    })
}

const EMPTY: &str = "No effect waits for an explanation. One comes here when a call ended and nobody can tell \
                     whether it happened, or when its output could not be kept.";

/// The run's own word on its effect; nothing where there is no such run any more.
async fn open(
    visitor: &Visitor,
    run: RunId,
    refused: Option<&Refused<'_>>,
) -> Result<Option<Open>, OperatorError> {
    let explanation = match visitor.operator().explain(run).await {
        Ok(explanation) => explanation,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let id = run.to_string();
    let form = refused.map(|it| it.form);
    Ok(Some(Open {
        run_href: visitor.to("/runs").segment(&id).done(),
        run: Text::name(id),
        explained: Explained::of(&explanation),
        deeds: Deeds::of(visitor, &explanation, "effects", form).about_effects(),
        close: visitor.to("/effects").maybe("app", visitor.asked.text("app")).done(),
    }))
}

fn row(visitor: &Visitor, effect: &EffectView, opened: Option<RunId>) -> Row {
    let id = effect.run.to_string();
    let asked = &visitor.asked;
    let settle = ["app", "scope", "age"]
        .into_iter()
        .fold(visitor.to("/effects"), |to, name| to.maybe(name, asked.text(name)));
    // Of a run that needs no person, a worker asks the provider itself.
    let state = match (effect.run_state, effect.state) {
        (RunState::NeedsAttention, EffectState::Succeeded) => {
            Badge { word: "output missing", tone: "warn", ..effect_state(effect.state) }
        }
        (_, state) => effect_state(state),
    };
    Row {
        run_href: visitor.to("/runs").segment(&id).done(),
        settle: settle.with("open", &id).at("open").done(),
        run: Text::name(id),
        workflow: Text::name(effect.workflow.as_str()),
        run_state: run_state(effect.run_state),
        step: Text::name(effect.step.as_str()),
        action: Text::name(&effect.action),
        state,
        waits_for_person: effect.run_state == RunState::NeedsAttention,
        key: Text::name(effect.effect_key.as_str()),
        since: When::of(effect.since, visitor.now),
        age: millis(effect.age_ms),
        is_open: opened == Some(effect.run),
    }
}
