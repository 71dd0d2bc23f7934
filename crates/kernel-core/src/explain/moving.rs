//! Why a run does not move, or what moves it; and one sentence on where it stands.

use serde::Serialize;

use super::{Coverage, Known, foresee, text};
use crate::{
    Code, Dependency, EffectState, GroupRow, Micros, Mode, OpenEffect, Phase, RunState, Timestamp,
    Todo,
};

/// One reason why a run stands where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// What sort of reason.
    pub kind: ReasonKind,
    /// A sentence.
    pub text: String,
    /// Since when.
    #[serde(serialize_with = "text::maybe_at")]
    pub since: Option<Timestamp>,
    /// When it ends by itself, if it does.
    #[serde(serialize_with = "text::maybe_at")]
    pub until: Option<Timestamp>,
}

/// The sorts of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonKind {
    /// A worker holds it: it moves.
    Held,
    /// Its worker's lease ran out.
    LeaseExpired,
    /// Ready, and no worker has taken it yet.
    Due,
    /// An execution ended badly; the next one comes later.
    Backoff,
    /// A worker has to ask the provider what became of an effect.
    ToReconcile,
    /// It waits for a signal.
    Signal,
    /// It waits for its children; or it has ended, and some of them have not.
    Children,
    /// It is held back until a sibling ends.
    HeldBack,
    /// It waits for an instant.
    Deadline,
    /// No live worker can run it.
    MissingModule,
    /// No worker lives.
    NoWorker,
    /// Cancel was requested and is not honoured yet.
    CancelRequested,
    /// A worker that takes it will end it, or call for a person.
    WouldStop,
    /// It waits for a person.
    Person,
    /// It was given up, and nobody knows what became of its effect.
    GivenUp,
    /// Its plan or journal cannot be read.
    Unreadable,
    /// It has ended.
    Ended,
}

struct Reasons(Vec<Reason>);

impl Reasons {
    fn add(
        &mut self,
        kind: ReasonKind,
        text: impl Into<String>,
        (since, until): (Option<Timestamp>, Option<Timestamp>),
    ) {
        self.0.push(Reason { kind, text: text.into(), since, until });
    }
}

/// The reasons, the most telling one first.
pub(super) fn reasons(known: &Known<'_>) -> Vec<Reason> {
    let (run, now) = (known.input.run, known.input.now);
    let mut reasons = Reasons(Vec::new());
    match &run.phase {
        Phase::Succeeded { .. } | Phase::Failed { .. } | Phase::Canceled { .. } => {
            ended(known, &mut reasons);
        }
        Phase::NeedsAttention(attention) => {
            let text = format!("{}: {}", attention.error.code, attention.error.message);
            let since = attention.effect.as_ref().map(|effect| effect.since);
            reasons.add(ReasonKind::Person, text, (since, None));
        }
        Phase::Waiting(wait) => waiting(known, wait, &mut reasons),
        Phase::Running { lease, .. } if lease.until > now => {
            let text = format!("worker {} holds it", lease.owner);
            reasons.add(ReasonKind::Held, text, (None, Some(lease.until)));
        }
        Phase::Running { lease, .. } => {
            let text = format!(
                "the lease of worker {} ran out {} ago: any worker that can run it takes it next",
                lease.owner,
                text::span(now.since(lease.until)),
            );
            reasons.add(ReasonKind::LeaseExpired, text, (Some(lease.until), None));
            next_worker(known, &mut reasons);
        }
        Phase::Queued { ready_at, todo } => queued(known, *ready_at, todo, &mut reasons),
    }
    if let Some(request) = run.cancel.as_ref().filter(|_| !run.state().is_terminal()) {
        let text = format!(
            "cancel was requested by {} ({}): it ends once {}",
            request.actor,
            request.reason,
            if run.has_unsettled_effect() {
                "the effect is explained"
            } else {
                "its worker sees that, or its lease runs out"
            },
        );
        reasons.add(ReasonKind::CancelRequested, text, (Some(request.at), None));
    }
    if let Some(why) = &known.unreadable {
        reasons.add(ReasonKind::Unreadable, why.clone(), (None, None));
    }
    reasons.0
}

fn ended(known: &Known<'_>, reasons: &mut Reasons) {
    let run = known.input.run;
    reasons.add(ReasonKind::Ended, "it has ended: nothing moves it any more", (run.ended_at, None));
    if let Some(effect) = given_up(run) {
        let text = format!(
            "nobody found out whether the effect of step `{}` (`{}`) happened, and that was accepted: ask the provider \
             for effect key {}. It stays listed, since this run is its only trace: no policy prunes it, and no verb \
             changes it any more. A new run has other effect keys",
            effect.step,
            effect.action,
            run.effect_key(&effect.step),
        );
        reasons.add(ReasonKind::GivenUp, text, (Some(effect.since), None));
    } else if let Some(why) = foresee::retry_in_vain(known) {
        reasons.add(ReasonKind::WouldStop, why, (None, None));
    }
    for group in known.input.children.iter().filter(|group| group.live > 0) {
        let text = format!("{} of step `{}` have not ended", children(group), group.step);
        reasons.add(ReasonKind::Children, text, (None, None));
    }
}

/// The effect with which the run was given up, if nobody knows what became of it.
fn given_up(run: &crate::Run) -> Option<&OpenEffect> {
    run.effect().filter(|effect| effect.state == EffectState::AbandonedUnknown)
}

fn waiting(known: &Known<'_>, wait: &crate::Wait, reasons: &mut Reasons) {
    let now = known.input.now;
    let since = (Some(wait.since), wait.deadline);
    if let Some(on) = &wait.on {
        let mut text = format!("step `{}` waits for {}", wait.step, awaited(known, on));
        if known.input.is_signaled == Some(true) {
            text.push_str(", which is recorded: recovery wakes it within seconds");
        }
        let kind = if on.is_signal() { ReasonKind::Signal } else { ReasonKind::Children };
        reasons.add(kind, text, since);
    }
    if let Some(deadline) = wait.deadline {
        let text = if deadline <= now {
            "its deadline has passed: recovery wakes it within seconds".to_owned()
        } else {
            let left = text::span(deadline.since(now));
            format!("it goes on in {left} by itself, whatever happens")
        };
        reasons.add(ReasonKind::Deadline, text, since);
    }
    coverage(known, reasons);
}

fn queued(known: &Known<'_>, ready_at: Timestamp, todo: &Todo, reasons: &mut Reasons) {
    let (run, now) = (known.input.run, known.input.now);
    if run.is_held() {
        let text = format!("{}; the next one that ends lets it go", held_back(known));
        reasons.add(ReasonKind::HeldBack, text, (Some(run.origin.created_at), None));
        return;
    }
    if ready_at > now {
        let left = text::span(ready_at.since(now));
        let text = match &run.last_failure {
            Some(failure) => {
                format!("tried again in {left}, after {}: {}", failure.code, failure.message)
            }
            None => format!("not taken by a worker for another {left}"),
        };
        reasons.add(ReasonKind::Backoff, text, (None, Some(ready_at)));
    } else {
        let waited = now.since(ready_at);
        let for_ = if waited < Micros::from_secs(1) {
            String::new()
        } else {
            format!(" for {}", text::span(waited))
        };
        let text = format!("ready{for_}, and no worker has taken it yet");
        reasons.add(ReasonKind::Due, text, (Some(ready_at), None));
    }
    if let Todo::Reconcile(effect) = todo {
        let text = format!(
            "the provider of `{}` is asked first what became of the call at step `{}`",
            effect.action, effect.step
        );
        reasons.add(ReasonKind::ToReconcile, text, (Some(effect.since), None));
    }
    next_worker(known, reasons);
}

/// Whether a worker can take it, and whether it would get any further.
fn next_worker(known: &Known<'_>, reasons: &mut Reasons) {
    coverage(known, reasons);
    if let Some(failure) = foresee::would_stop(known) {
        let ends = if failure.code == Code::RETRY_EXHAUSTED { "gives it up" } else { "ends it" };
        let text = format!(
            "the next worker {ends} without calling anything: {}: {}",
            failure.code, failure.message
        );
        reasons.add(ReasonKind::WouldStop, text, (None, None));
    }
}

/// Whether a worker that lives can run it.
fn coverage(known: &Known<'_>, reasons: &mut Reasons) {
    let Some(plan) = known.input.plan else { return };
    let (run, sessions) = (&known.input.run.origin, known.input.sessions);
    match Coverage::of_run(&plan.footprint, run, sessions, known.input.now) {
        Coverage::Covered => {}
        Coverage::Lacking(lacks) => {
            let text = format!("no live worker can run it; the nearest lacks {}", lacks.join(", "));
            reasons.add(ReasonKind::MissingModule, text, (None, None));
        }
        Coverage::NoWorker => {
            let worker = match run.mode {
                Mode::Execute => "worker",
                Mode::DryRun => "dry-run worker",
            };
            let text = format!(
                "no {worker} was seen in the last minute; it needs one with module `{}`",
                plan.footprint.module
            );
            reasons.add(ReasonKind::NoWorker, text, (None, None));
        }
    }
}

fn awaited(known: &Known<'_>, on: &Dependency) -> String {
    if let Some(step) = on.children_of() {
        let group = known.input.children.iter().find(|group| group.step == step);
        return group.map_or_else(|| "its children".to_owned(), children);
    }
    let where_ = if on.is_app_wide() { " of the app" } else { "" };
    format!("signal `{}` with key `{}`{where_}", on.kind(), on.key())
}

/// `3 of its 10 children (1 of them in a person's list, 2 of them held back)`.
fn children(group: &GroupRow) -> String {
    let attention = group.count(RunState::NeedsAttention);
    format!("{} of its {} children{}", group.live, group.total, notes(attention, group.held))
}

fn notes(attention: u32, held: u32) -> String {
    let counts = [(attention, "in a person's list"), (held, "held back")];
    let notes: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} of them {what}"))
        .collect();
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) }
}

/// Of a run that has ended: the children that have not.
fn left_open(known: &Known<'_>) -> Option<String> {
    let groups = known.input.children;
    let sum = |of: fn(&GroupRow) -> u32| groups.iter().map(of).fold(0, u32::saturating_add);
    let (live, total) = (sum(|group| group.live), sum(|group| group.total));
    let attention = sum(|group| group.count(RunState::NeedsAttention));
    let notes = notes(attention, sum(|group| group.held));
    (live > 0).then(|| format!(" {live} of its {total} children{notes} have not ended."))
}

/// Why a child is held back.
fn held_back(known: &Known<'_>) -> String {
    let parallel = known.input.group.map_or(0, |(group, _)| group.parallel);
    format!("it is held back: its parent's step runs {parallel} children at once")
}

/// Where the run stands, in a sentence.
pub(super) fn headline(known: &Known<'_>) -> String {
    let mut headline = match known.input.run.origin.mode {
        Mode::Execute => state(known),
        Mode::DryRun => format!("Dry run, nothing is done. {}", state(known)),
    };
    let has_ended = known.input.run.state().is_terminal();
    let open = left_open(known).filter(|_| has_ended);
    if (open.is_some() || known.unreadable.is_some()) && !headline.ends_with(['.', '!', '?']) {
        headline.push('.');
    }
    headline.extend(open);
    if known.unreadable.is_some() {
        headline.push_str(" Its plan or journal cannot be read: what it did is not known here.");
    }
    headline
}

fn state(known: &Known<'_>) -> String {
    let (run, now) = (known.input.run, known.input.now);
    match &run.phase {
        Phase::Succeeded { message: Some(message), .. } => format!("Succeeded: {message}"),
        Phase::Succeeded { message: None, .. } => "Succeeded.".to_owned(),
        Phase::Failed { error, .. } => {
            let unknown = given_up(run).map_or_else(String::new, |effect| {
                format!("; what became of the effect of `{}` is unknown", effect.action)
            });
            format!("Failed{} with {}: {}{unknown}", place(known), error.code, error.message)
        }
        Phase::Canceled { message: Some(message) } => format!("Canceled: {message}"),
        Phase::Canceled { message: None } => "Canceled.".to_owned(),
        Phase::NeedsAttention(attention) => {
            let error = &attention.error;
            format!("Needs a person{}: {}: {}", place(known), error.code, error.message)
        }
        Phase::Waiting(wait) => match (&wait.on, wait.deadline) {
            (Some(on), None) => format!("Waits{} for {}.", place(known), awaited(known, on)),
            (Some(on), Some(deadline)) => {
                let awaited = awaited(known, on);
                let until = text::instant(deadline);
                format!("Waits{} for {awaited}, at most until {until}.", place(known))
            }
            (None, Some(deadline)) => {
                format!("Waits{} until {}.", place(known), text::instant(deadline))
            }
            (None, None) => format!("Waits{}.", place(known)),
        },
        Phase::Running { lease, .. } if lease.until <= now => {
            format!("Lost its worker{}; the next one takes it over.", place(known))
        }
        Phase::Running { todo: Todo::Reconcile(effect), .. } => {
            format!("Runs{}: the outcome of `{}` is open.", place(known), effect.action)
        }
        Phase::Running { todo: Todo::Steps, .. } => format!("Runs{}.", place(known)),
        Phase::Queued { todo: Todo::Reconcile(effect), .. } => format!(
            "Queued{} to find out what became of the call of `{}`.",
            place(known),
            effect.action
        ),
        Phase::Queued { .. } if run.is_held() => format!("Queued; {}.", held_back(known)),
        Phase::Queued { ready_at, .. } => match &run.last_failure {
            Some(failure) if *ready_at > now => format!(
                "Tried again at {ready_at}{}, after {}: {}",
                place(known),
                failure.code,
                failure.message
            ),
            Some(_) | None if run.origin.mode == Mode::Execute && known.is_unclaimable() => {
                format!("Queued{}, and no live worker can run it.", place(known))
            }
            Some(_) | None if run.attempt == 0 => "Queued; no worker has taken it yet.".to_owned(),
            Some(_) | None => format!("Queued{}.", place(known)),
        },
    }
}

/// ` at step `steps.1` (`payOrder`)`, where the run stands at a step.
fn place(known: &Known<'_>) -> String {
    match (known.open_step(), foresee::open_action(known)) {
        (Some(step), Some(action)) => format!(" at step `{step}` (`{action}`)"),
        (Some(step), None) => format!(" at step `{step}`"),
        (None, _) => String::new(),
    }
}
