//! One run: where it stands, why, what it did, and what may be done.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;
use surefoot_kernel_core::{BudgetLine, Explanation, Mode, RunId, Timestamp};
use surefoot_operator::{InspectView, JournalRange, JournalRowView, ShowView, StepView};

use super::address::Asked;
use super::answer;
use super::explained::{Asks, Deeds, Explained};
use super::frame::{Frame, Notice};
use super::runs::Row;
use super::svg::{Graph, Span, Tones, share};
use super::text::Text;
use super::visitor::{Named, Visitor};
use super::words::{Badge, When, class_hint, effect_state, run_state, step_state};

/// Steps of a page.
const STEPS: usize = 100;
/// Rows of the journal of a page.
const JOURNAL: u64 = 50;
/// Facts of a row; what was computed without an effect is committed by the hundred.
const FACTS: usize = 8;

#[derive(Template)]
#[template(path = "run.html")]
struct Page {
    frame: Frame,
    id: String,
    state: Badge,
    is_dry: bool,
    facts: Vec<Fact>,
    unreadable: Option<Text>,
    explained: Explained,
    deeds: Deeds,
    graph: Graph,
    steps: Vec<Step>,
    steps_omitted: u64,
    steps_pager: Pager,
    budget: Vec<Budget>,
    payloads: Vec<Payload>,
    children: Vec<Row>,
    all_children: String,
    journal: Vec<JournalRow>,
    journal_pager: Pager,
}

/// One thing about the run.
struct Fact {
    label: &'static str,
    value: Text,
    href: Option<String>,
    when: Option<When>,
}

struct Step {
    key: Text,
    label: Option<Text>,
    action: Text,
    class: Option<(&'static str, &'static str)>,
    state: Badge,
    why: Option<Text>,
    effect: Option<Badge>,
    effect_key: Option<Text>,
    attempt: Option<u32>,
    started: Option<When>,
    took: Option<String>,
    span: Option<Span>,
    error: Option<(Text, Text)>,
}

/// Which part of a list is shown.
struct Pager {
    from: usize,
    to: usize,
    total: usize,
    before: Option<String>,
    after: Option<String>,
}

struct Budget {
    dimension: Text,
    used: String,
    limit: Option<String>,
    share: i64,
    tone: &'static str,
}

struct Payload {
    label: &'static str,
    text: Text,
    raw: String,
}

struct JournalRow {
    seq: u64,
    generation: u64,
    at: When,
    facts: Vec<(Text, Text)>,
    /// Facts that are left out.
    omitted: usize,
    raw: String,
}

/// What is said where a form was refused.
pub(crate) struct Refused<'f> {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    pub(crate) form: &'f Asked,
}

pub(crate) async fn page(Named(run): Named<String>, visitor: Visitor) -> Response {
    match run.parse::<RunId>() {
        Ok(run) => shown(visitor, run, None).await,
        // What is no id leads to the list.
        Err(_) => answer::go_to(&visitor.to("/runs").with("unknown", "page").done()),
    }
}

/// The page of a run, also where it says why a form was refused.
pub(crate) async fn shown(
    mut visitor: Visitor,
    run: RunId,
    refused: Option<Refused<'_>>,
) -> Response {
    visitor.asked.only(&["steps", "journal"]);
    let steps_page: usize = visitor.asked.parse("steps").unwrap_or(1).max(1);
    let journal_page: u64 = visitor.asked.parse("journal").unwrap_or(1).max(1);
    let skip = (journal_page - 1).saturating_mul(JOURNAL);
    let range = JournalRange { skip, limit: JOURNAL };
    match visitor.operator().inspect(run, range).await {
        Ok(seen) => {
            let status = refused.as_ref().map_or(StatusCode::OK, |it| it.status);
            let pages = (steps_page, journal_page);
            answer::page(status, &view(&visitor, &seen, pages, refused))
        }
        Err(error) => visitor.failed(&error),
    }
}

fn view(
    visitor: &Visitor,
    seen: &InspectView,
    (steps_page, journal_page): (usize, u64),
    refused: Option<Refused<'_>>,
) -> Page {
    let (show, it) = (&seen.show, &seen.explanation);
    let id = show.run.id.to_string();
    let title = format!("{} · {}", run_state(show.run.state).word, show.run.workflow);
    let live = format!("{}/api/v1/runs/{id}/live", visitor.base);
    let mut frame = Frame::of(visitor, &title, "Runs");
    // An ended run changes by a person's word only.
    if !show.run.state.is_terminal() {
        frame = frame.live(live);
    }
    if let Some(refused) = &refused {
        frame = frame.notice(Notice::bad(&refused.text));
    }
    let here = |name: &'static str, page: usize, id: &str| {
        let other = match name {
            "steps" => ("journal", journal_page.to_string()),
            _ => ("steps", steps_page.to_string()),
        };
        let address = visitor.to("/runs").segment(&show.run.id.to_string());
        // The first page is what stands there without a word.
        let other = if other.1 == "1" { ("", String::new()) } else { other };
        address.with(name, &page.to_string()).with(other.0, &other.1).at(id).done()
    };
    let steps_total = show.steps.len();
    let from = (steps_page - 1).saturating_mul(STEPS);
    let page_of = |from: usize, per: usize, total: usize, name: &'static str, id: &str| Pager {
        from: (from + 1).min(total),
        to: (from + per).min(total),
        total,
        before: (from > 0).then(|| here(name, from / per, id)),
        after: (from + per < total).then(|| here(name, from / per + 2, id)),
    };
    let journal_total = usize::try_from(seen.journal_rows).unwrap_or(usize::MAX);
    let (journal_from, journal_per) =
        (usize::try_from((journal_page - 1) * JOURNAL).unwrap_or(usize::MAX), JOURNAL as usize);
    let listed: Vec<&StepView> = show.steps.iter().skip(from).take(STEPS).collect();
    Page {
        state: run_state(show.run.state),
        is_dry: show.run.mode == Mode::DryRun,
        facts: facts(visitor, show),
        unreadable: show.unreadable.as_ref().map(Text::sentence),
        explained: Explained::of(it),
        deeds: Deeds::of(visitor, it, "run", refused.as_ref().map(|it| it.form)),
        graph: Graph::of(&seen.outline, Some(&Tones::of(&it.steps))),
        steps: steps(&listed, it),
        steps_omitted: show.steps_omitted,
        steps_pager: page_of(from, STEPS, steps_total, "steps", "steps"),
        budget: show.budget.iter().map(budget).collect(),
        payloads: payloads(visitor, show, &id),
        children: show.children.iter().map(|child| Row::of(visitor, child)).collect(),
        all_children: visitor.to("/runs").with("parent", &id).done(),
        journal: seen.journal.iter().map(|row| journal(visitor, &id, row)).collect(),
        journal_pager: page_of(journal_from, journal_per, journal_total, "journal", "journal"),
        id,
        frame,
    }
}

fn facts(visitor: &Visitor, show: &ShowView) -> Vec<Fact> {
    let run = &show.run;
    let plain =
        |label, value: String| Fact { label, value: Text::name(value), href: None, when: None };
    let link = |label, value: &str, href: String| Fact {
        href: Some(href),
        ..plain(label, value.to_owned())
    };
    let place = |path: &str| {
        visitor.to(path).with("app", run.app.as_str()).with("scope", run.scope.as_str())
    };
    let workflow = place("/workflow").with("workflow", run.workflow.as_str()).done();
    let mut facts = vec![
        link("Workflow", run.workflow.as_str(), workflow),
        plain("Version", run.version.to_string()),
        link("Place", &format!("{}/{}", run.app, run.scope), place("/runs").done()),
        plain("Revision", run.revision.to_string()),
        plain("Claims", run.attempt.to_string()),
    ];
    let times = [
        ("Created", Some(run.created_at)),
        ("First claim", run.started_at),
        ("Ended", run.finished_at),
    ];
    for (label, at) in times {
        let when = When::maybe(at, visitor.now);
        if when.is_some() {
            facts.push(Fact { when, ..plain(label, String::new()) });
        }
    }
    if let Some(parent) = run.parent {
        let id = parent.to_string();
        facts.push(link("Parent", &id, visitor.to("/runs").segment(&id).done()));
    }
    if let Some(event) = &show.event {
        let id = event.id.to_string();
        let kind = event.kind.clone().unwrap_or_else(|| "an event".to_owned());
        let runs = visitor.to("/runs").with("app", run.app.as_str()).with("event", &id).done();
        facts.push(link("Caused by", &format!("{kind} {id}"), runs));
        facts.extend(event.trigger.clone().map(|trigger| plain("Trigger", trigger)));
        facts.extend(event.key.clone().map(|key| plain("Event key", key)));
        for tag in &event.tags {
            let tagged = visitor.to("/runs").with("app", run.app.as_str()).with("tag", tag).done();
            facts.push(link("Tag", tag, tagged));
        }
    }
    if let Some(message) = &show.result_message {
        facts.push(Fact { value: Text::sentence(message), ..plain("Said", String::new()) });
    }
    facts
}

fn steps(listed: &[&StepView], it: &Explanation) -> Vec<Step> {
    let now = it.read_at;
    let started = |step: &&StepView| step.started_at.map(|at| at.0.micros());
    let ended = |step: &&StepView| step.finished_at.map_or(now, |at| at.0).micros();
    let from = listed.iter().filter_map(started).min().unwrap_or_default();
    let until = listed.iter().filter(|step| started(step).is_some()).map(ended).max();
    let scale = (from, until.unwrap_or(from));
    listed.iter().map(|step| one_step(step, it, now, scale)).collect()
}

fn one_step(step: &StepView, it: &Explanation, now: Timestamp, scale: (i64, i64)) -> Step {
    let shown = it.steps.iter().find(|shown| shown.key == step.key);
    let state = step_state(step.state);
    let until = step.finished_at.map_or(now, |at| at.0);
    let span =
        step.started_at.map(|at| Span::of((at.0.micros(), until.micros()), scale, state.tone));
    let took = step.started_at.map(|at| surefoot_kernel_core::span_in_words(until.since(at.0)));
    let error = step.error.as_ref();
    Step {
        key: Text::name(step.key.as_str()),
        label: shown.and_then(|it| it.label.as_ref()).map(Text::name),
        action: Text::name(&step.action),
        class: step.class.map(|class| (class.as_str(), class_hint(class))),
        state,
        why: shown.and_then(|it| it.why.as_ref()).map(Text::sentence),
        effect: step.effect_state.map(effect_state),
        effect_key: step.effect_key.as_ref().map(|key| Text::name(key.as_str())),
        attempt: step.attempt,
        started: When::maybe(step.started_at, now),
        took,
        span,
        error: error.map(|it| (Text::name(it.code.as_str()), Text::sentence(&it.message))),
    }
}

fn budget(line: &BudgetLine) -> Budget {
    let share = line.limit.map_or(0, |limit| match limit.millionths() {
        0 => 1_000,
        limit => share(line.used.millionths(), limit),
    });
    let tone = if share >= 1_000 {
        "bad"
    } else if share >= 800 {
        "warn"
    } else {
        "busy"
    };
    let (used, limit) = (line.used.to_string(), line.limit.map(|limit| limit.to_string()));
    Budget { dimension: Text::name(&line.dimension), used, limit, share, tone }
}

fn payloads(visitor: &Visitor, show: &ShowView, id: &str) -> Vec<Payload> {
    let raw = |what: &str| visitor.to("/runs").segment(id).done() + "/raw/" + what;
    let event = show.event.as_ref().map(|event| ("Event", &event.payload, "event"));
    let parts = [("Inputs", &show.inputs, "inputs"), ("Result", &show.result, "result")];
    let given = parts.into_iter().chain(event).filter(|(_, value, _)| !value.is_null());
    given
        .map(|(label, value, what)| Payload {
            label,
            text: Text::payload(pretty(value)),
            raw: raw(what),
        })
        .collect()
}

/// As JSON for people. Numbers keep their digits.
pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn journal(visitor: &Visitor, id: &str, row: &JournalRowView) -> JournalRow {
    let shown = row.facts.iter().take(FACTS);
    let written = shown.map(|fact| serde_json::to_value(fact).unwrap_or_default());
    // A fact is its kind with what belongs to it, or its kind alone.
    let facts = written.map(|fact| match fact.as_object().and_then(|it| it.iter().next()) {
        Some((kind, body)) => (words(kind), Text::sentence(body.to_string())),
        None => (words(fact.as_str().unwrap_or_default()), Text::default()),
    });
    JournalRow {
        seq: row.seq,
        generation: row.generation,
        at: When::of(row.at, visitor.now),
        facts: facts.collect(),
        omitted: row.facts.len().saturating_sub(FACTS),
        raw: visitor.to("/runs").segment(id).done() + "/raw/journal?seq=" + &row.seq.to_string(),
    }
}

fn words(kind: &str) -> Text {
    Text::name(kind.replace('_', " "))
}
