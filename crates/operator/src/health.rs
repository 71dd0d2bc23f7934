//! Health at a glance, and what makes it red.
//!
//! Red means that somebody has to act now. The rules, each with its sentence in [`AppHealthView::red`]:
//!
//! - a run needs a person;
//! - an effect has been unexplained for [`UNSETTLED_RED_AFTER`]: longer than a provider is asked by default;
//! - a run has been due for [`RUN_DUE_RED_AFTER`], whether no worker can run it or none is free;
//! - an event has waited for its runs for [`EVENT_PENDING_RED_AFTER`], or dispatch failed for good;
//! - a worker has a slot whose hook does not return.
//!
//! Not red: events that nobody listens to, runs that failed, a clock that is off, an effect that is executing.

use std::collections::BTreeMap;

use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    App, AppHealth, Coverage, EventFilter, EventStatus, Micros, Mode, RunState, SessionRow,
    Timestamp, is_live,
};

use crate::view::{
    AppHealthView, At, EventHealthView, HealthView, MissingModuleView, WorkerHealthView, millis,
};
use crate::{Operator, OperatorError};

/// An effect that is unexplained for so long is red.
pub const UNSETTLED_RED_AFTER: Micros = Micros::from_secs(900);
/// A run that is due for so long is red.
pub const RUN_DUE_RED_AFTER: Micros = Micros::from_secs(60);
/// An event that waits for its runs for so long is red.
pub const EVENT_PENDING_RED_AFTER: Micros = Micros::from_secs(60);
/// A clock that is off by so much is worth a note.
pub const CLOCK_SKEW_NOTED_FROM: Micros = Micros::from_secs(2);

impl Operator {
    /// The health of one app, or of every app of the store. `wall` is the time of this process's own clock, to be
    /// compared with the store's.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] for an app that the store does not hold; the store's.
    pub async fn health(
        &self,
        app: Option<App>,
        wall: Option<Timestamp>,
    ) -> Result<HealthView, OperatorError> {
        let apps = match app {
            Some(app) => vec![self.known_app(Some(app)).await?],
            None => self.store.app_list().await?,
        };
        let mut views = Vec::with_capacity(apps.len());
        for app in apps {
            views.push(self.app_health(app, wall).await?);
        }
        Ok(HealthView { ok: views.iter().all(|view| view.ok), apps: views })
    }

    async fn app_health(
        &self,
        app: App,
        wall: Option<Timestamp>,
    ) -> Result<AppHealthView, OperatorError> {
        let numbers = self.store.app_health(&app).await?;
        let sessions = self.store.session_list(&app).await?;
        let footprints = self.store.footprint_list(&app).await?;
        let missing = missing_modules(&numbers, &sessions, &footprints);
        let skew = wall.map(|wall| wall.micros().saturating_sub(numbers.now.micros()) / 1_000);
        let failing = self.dispatch_error(&app, &numbers).await?;
        Ok(view(app, (&numbers, failing), &sessions, missing, skew))
    }

    /// Why the dispatch of an event that waits for its runs fails.
    async fn dispatch_error(
        &self,
        app: &App,
        numbers: &AppHealth,
    ) -> Result<Option<String>, OperatorError> {
        if numbers.events_pending == 0 {
            return Ok(None);
        }
        let (app, status) = (Some(app.clone()), Some(EventStatus::Retrying));
        let filter = EventFilter { app, status, limit: 1, ..EventFilter::default() };
        let page = self.store.event_list(filter).await?;
        Ok(page.rows.into_iter().next().and_then(|row| row.error))
    }
}

/// What open runs need and no live worker offers.
fn missing_modules(
    numbers: &AppHealth,
    sessions: &[SessionRow],
    footprints: &[Footprint],
) -> Vec<MissingModuleView> {
    let now = numbers.now;
    let lacking = footprints.iter().filter_map(|footprint| {
        let lacks = match Coverage::of(footprint, Mode::Execute, sessions, now) {
            Coverage::Covered => return None,
            Coverage::Lacking(lacks) => lacks,
            Coverage::NoWorker => vec![format!("module `{}`", footprint.module)],
        };
        let hash = footprint.hash();
        let due = numbers.due_by_footprint.iter().find(|(of, _, _)| *of == hash);
        Some(MissingModuleView {
            module: footprint.module.clone(),
            footprint: hash,
            lacks,
            due_runs: due.map_or(0, |(_, count, _)| *count),
            oldest_due_ms: due.map(|(_, _, oldest)| millis(now.since(*oldest))),
        })
    });
    lacking.collect()
}

fn view(
    app: App,
    (numbers, dispatch_error): (&AppHealth, Option<String>),
    sessions: &[SessionRow],
    missing_modules: Vec<MissingModuleView>,
    clock_skew_ms: Option<i64>,
) -> AppHealthView {
    let now = numbers.now;
    let age = |at: Option<Timestamp>| at.map(|at| millis(now.since(at)));
    let workers: Vec<WorkerHealthView> = sessions
        .iter()
        .map(|row| WorkerHealthView {
            session: row.session,
            name: row.name.clone(),
            mode: row.mode,
            live: is_live(row, now),
            seen_ms: millis(now.since(row.seen_at)),
            slots: row.slots,
            busy: row.busy,
            stuck: row.stuck,
        })
        .collect();
    let red = red((numbers, dispatch_error.as_deref()), &missing_modules, &workers);
    AppHealthView {
        app,
        ok: red.is_empty(),
        red,
        notes: notes(numbers, &missing_modules, clock_skew_ms),
        read_at: At(now),
        runs: runs_by_state(numbers),
        oldest_due_at: numbers.oldest_due.map(At),
        start_lag_ms: age(numbers.oldest_due).unwrap_or(0),
        unsettled_effects: numbers.unsettled_effects,
        oldest_unsettled_ms: age(numbers.oldest_unsettled),
        outputs_missing: numbers.outputs_missing,
        effects_given_up: numbers.effects_given_up,
        exhausted: numbers.exhausted,
        events: EventHealthView {
            pending: numbers.events_pending,
            oldest_pending_ms: age(numbers.oldest_pending_event),
            dispatch_error,
            dead_lettered: numbers.events_dead_lettered,
            unmatched: numbers.events_unmatched,
        },
        missing_modules,
        workers,
        clock_skew_ms,
    }
}

/// Every state, also where no run is in it.
fn runs_by_state(numbers: &AppHealth) -> BTreeMap<&'static str, u64> {
    let count = |state: RunState| numbers.runs.iter().find(|(of, _)| *of == state);
    RunState::ALL
        .iter()
        .map(|state| (state.as_str(), count(*state).map_or(0, |(_, count)| *count)))
        .collect()
}

fn red(
    (numbers, dispatch_error): (&AppHealth, Option<&str>),
    missing: &[MissingModuleView],
    workers: &[WorkerHealthView],
) -> Vec<String> {
    let now = numbers.now;
    let mut red = Vec::new();
    let is_older = |at: Option<Timestamp>, than: Micros| at.is_some_and(|at| now.since(at) >= than);
    let in_attention = numbers.runs.iter().filter(|(state, _)| *state == RunState::NeedsAttention);
    let in_attention: u64 = in_attention.map(|(_, count)| count).sum();
    if in_attention > 0 {
        red.push(format!("{} for a person", runs(in_attention, "waits", "wait")));
    }
    if is_older(numbers.oldest_unsettled, UNSETTLED_RED_AFTER) {
        red.push("an effect has been unexplained for too long".to_owned());
    }
    let late = missing.iter().filter(|it| is_long(it.oldest_due_ms, RUN_DUE_RED_AFTER));
    for (wanted, due) in due_by_wanted(late) {
        let are = runs(due, "is due", "are due");
        red.push(format!("{are}, and no live worker offers {wanted}"));
    }
    let is_missing = |hash: &str| missing.iter().any(|module| module.footprint == hash);
    let late = numbers
        .due_by_footprint
        .iter()
        .filter(|(hash, _, oldest)| !is_missing(hash) && now.since(*oldest) >= RUN_DUE_RED_AFTER);
    let late: u64 = late.map(|(_, count, _)| count).sum();
    if late > 0 {
        let are = runs(late, "is due", "are due");
        let them = if late == 1 { "it" } else { "them" };
        red.push(format!("{are} for too long, and no worker has a free slot for {them}"));
    }
    if is_older(numbers.oldest_pending_event, EVENT_PENDING_RED_AFTER) {
        red.push(undispatched(dispatch_error, workers));
    }
    if numbers.events_dead_lettered > 0 {
        red.push(format!("dispatch of {} failed for good", events(numbers.events_dead_lettered)));
    }
    for worker in workers.iter().filter(|worker| worker.live && worker.stuck > 0) {
        let slots = if worker.stuck == 1 { "slot" } else { "slots" };
        red.push(format!("worker `{}` has {} stuck {slots}", worker.name, worker.stuck));
    }
    red
}

/// Events wait: a worker tries in vain, or does not come to it, or there is none.
fn undispatched(error: Option<&str>, workers: &[WorkerHealthView]) -> String {
    let is_alive = workers.iter().any(|it| it.live && it.mode == Mode::Execute);
    match error {
        Some(error) => format!("events wait for their runs, and their dispatch fails: {error}"),
        None if is_alive => {
            "events have waited for their runs for too long, though a worker is live".to_owned()
        }
        None => "events wait for their runs, and no worker is live that creates them".to_owned(),
    }
}

/// Versions of one module have several footprints: what they want alike is said once, with all its runs.
fn due_by_wanted<'m>(
    missing: impl Iterator<Item = &'m MissingModuleView>,
) -> BTreeMap<String, u64> {
    let mut due = BTreeMap::new();
    for module in missing {
        *due.entry(wanted(module)).or_default() += module.due_runs;
    }
    due
}

/// What workers lack: the whole module, or parts of it.
pub(crate) fn wanted(module: &MissingModuleView) -> String {
    let whole = format!("module `{}`", module.module);
    if module.lacks.iter().all(|part| *part == whole) {
        return whole;
    }
    format!("{} of {whole}", module.lacks.join(", "))
}

fn notes(numbers: &AppHealth, missing: &[MissingModuleView], skew: Option<i64>) -> Vec<String> {
    let mut notes = Vec::new();
    let young = missing.iter().filter(|it| !is_long(it.oldest_due_ms, RUN_DUE_RED_AFTER));
    for (wanted, _) in due_by_wanted(young) {
        notes.push(format!("open runs need what no live worker offers: {wanted}"));
    }
    if numbers.effects_given_up > 0 {
        let (count, them) = (numbers.effects_given_up, "given up without knowing what became of");
        notes.push(match count {
            1 => format!("1 effect was {them} it; it stays listed"),
            _ => format!("{count} effects were {them} them; they stay listed"),
        });
    }
    if numbers.exhausted > 0 {
        notes.push(format!("{} with RETRY_EXHAUSTED", runs(numbers.exhausted, "failed", "failed")));
    }
    if numbers.dry_runs_due > 0 {
        let are = if numbers.dry_runs_due == 1 { "dry run waits" } else { "dry runs wait" };
        notes.push(format!(
            "{} {are} for a dry-run worker of the application",
            numbers.dry_runs_due
        ));
    }
    for place in &numbers.deleting {
        notes.push(format!(
            "the deletion of {place} has begun and has not ended: until the same `surefoot delete` has, nothing is \
             published or emitted there"
        ));
    }
    if numbers.trees_half_deleted > 0 {
        let (count, trees) = (numbers.trees_half_deleted, "of which a part is deleted already");
        let them = if count == 1 { "1 tree of runs" } else { &format!("{count} trees of runs") };
        notes.push(format!(
            "{them} {trees}: a `surefoot prune` or `surefoot delete` was stopped, and the same one goes on"
        ));
    }
    if numbers.events_unmatched > 0 {
        notes.push(format!("{} matched no workflow", events(numbers.events_unmatched)));
    }
    if let Some(skew) = skew.filter(|skew| skew.abs() >= millis(CLOCK_SKEW_NOTED_FROM)) {
        notes.push(format!("this machine's clock is {}", ahead(skew)));
    }
    notes
}

/// How two clocks stand to each other.
pub(crate) fn ahead(skew_ms: i64) -> String {
    let (ms, word) = (skew_ms.unsigned_abs(), if skew_ms < 0 { "behind" } else { "ahead of" });
    format!("{ms} ms {word} the store's")
}

fn is_long(age_ms: Option<i64>, than: Micros) -> bool {
    age_ms.is_some_and(|age| age >= millis(than))
}

fn runs(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 run {one}") } else { format!("{count} runs {many}") }
}

fn events(count: u64) -> String {
    if count == 1 { "1 event".to_owned() } else { format!("{count} events") }
}
