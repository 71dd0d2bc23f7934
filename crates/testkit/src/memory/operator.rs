//! What people look at.

use std::collections::BTreeMap;

use serde_json::Value;
use surefoot_kernel_core::{
    App, AppHealth, AuditRow, Budget, Code, EffectRow, EventFilter, EventId, EventRow, EventStatus,
    Mode, Origin, Page, Phase, Run, RunCount, RunDetail, RunFilter, RunId, RunRow, RunSpan,
    RunState, Scope, SessionRow, SignalRow, Standing, StoreError, Timestamp,
};

use super::runs::journal_after;
use super::state::{EventEntry, State};

impl State {
    pub(super) fn app_list(&self) -> Vec<App> {
        let workflows = self.workflows.keys().map(|(app, _, _)| app);
        let events = self.events.values().map(|entry| &entry.app);
        let signals = self.signals.keys().map(|key| &key.app);
        let sessions = self.sessions.values().map(|entry| &entry.report.app);
        // Audit rows outlive what they tell of.
        let audits = self.audit.iter().map(|(app, _)| app);
        let mut apps: Vec<App> =
            workflows.chain(events).chain(signals).chain(sessions).chain(audits).cloned().collect();
        apps.sort_unstable();
        apps.dedup();
        apps
    }

    pub(super) fn run_list(&self, filter: &RunFilter) -> Result<Page<RunRow>, StoreError> {
        let cursor = filter.cursor.as_deref().map(read_cursor).transpose()?;
        let place = |run: &Run| (run.origin.created_at, run.id);
        let mut runs: Vec<&Run> = self
            .runs
            .values()
            .map(|entry| &entry.run)
            .filter(|run| is_wanted(run, filter) && self.is_tagged(run, filter.tag.as_deref()))
            .filter(|run| cursor.is_none_or(|at| place(run) < at))
            .collect();
        runs.sort_unstable_by_key(|run| std::cmp::Reverse(place(run)));
        let (runs, next) = cut(runs, filter.limit, |run| write_cursor(place(run)));
        let rows = runs.into_iter().map(|run| RunRow {
            run: without_result(run),
            version_revision: self.revision_of(run.origin.version).unwrap_or_default(),
        });
        Ok(Page { rows: rows.collect(), next })
    }

    fn is_tagged(&self, run: &Run, tag: Option<&str>) -> bool {
        let Some(tag) = tag else { return true };
        let event = run.origin.event.and_then(|event| self.events.get(&event));
        event.is_some_and(|event| event.tags.iter().any(|known| known == tag))
    }

    pub(super) fn run_detail(&self, run: RunId, now: Timestamp) -> Option<RunDetail> {
        let entry = self.runs.get(&run)?;
        let origin = &entry.run.origin;
        let version = self.versions.get(&origin.version)?;
        let event = origin.event.and_then(|id| Some(event_row(id, self.events.get(&id)?)));
        Some(RunDetail {
            run: entry.run.clone(),
            version_revision: version.stored.revision,
            invocation: self.invocation_of(entry),
            budget: self.budget_of(&entry.run),
            journal: journal_after(entry, 0),
            plan: version.stored.plan.clone(),
            event,
            children: self.children_groups(run),
            group: self.group_of(&entry.run),
            now,
        })
    }

    /// The counters of a run's root.
    pub(super) fn budget_of(&self, run: &Run) -> Budget {
        self.budgets.get(&run.origin.root).cloned().unwrap_or_default()
    }

    pub(super) fn effect_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
        now: Timestamp,
    ) -> Vec<EffectRow> {
        let runs = self.runs.values().map(|entry| &entry.run);
        let of_place = runs.filter(|run| is_of(&run.origin, app, scope));
        let mut rows: Vec<EffectRow> = of_place
            .filter_map(|run| {
                Some(EffectRow {
                    run: run.id,
                    scope: run.origin.scope.clone(),
                    workflow: run.origin.workflow.clone(),
                    run_state: run.state(),
                    revision: run.revision,
                    effect: run.effect()?.clone(),
                    now,
                })
            })
            .filter(|row| row.standing().is_some())
            .collect();
        // What was given up stays listed for ever: it must not push what can still be explained off the list.
        rows.sort_by_key(|row| {
            let is_given_up = row.standing() == Some(Standing::GivenUp);
            (is_given_up, row.effect.since, row.run)
        });
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        rows
    }

    pub(super) fn event_list(&self, filter: &EventFilter) -> Result<Page<EventRow>, StoreError> {
        let cursor = filter.cursor.as_deref().map(read_cursor).transpose()?;
        let fits = |entry: &EventEntry| {
            filter.app.as_ref().is_none_or(|app| entry.app == *app)
                && filter.scope.as_ref().is_none_or(|scope| entry.scope == *scope)
                && filter.kind.as_ref().is_none_or(|kind| entry.kind == *kind)
                && filter.status.is_none_or(|status| entry.status == status)
        };
        let mut events: Vec<(Timestamp, EventId)> = self
            .events
            .iter()
            .filter(|(_, entry)| fits(entry))
            .map(|(id, entry)| (entry.recorded_at, *id))
            .filter(|place| cursor.is_none_or(|at| *place < at))
            .collect();
        events.sort_unstable_by_key(|place| std::cmp::Reverse(*place));
        let (events, next) = cut(events, filter.limit, |place| write_cursor(*place));
        let rows =
            events.into_iter().filter_map(|(_, id)| Some(event_row(id, self.events.get(&id)?)));
        Ok(Page { rows: rows.collect(), next })
    }

    pub(super) fn signal_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
        now: Timestamp,
    ) -> Vec<SignalRow> {
        let unspent = self.signals.iter().filter(|(key, entry)| {
            let is_there = scope.is_none_or(|scope| key.scope.as_ref() == Some(scope));
            key.app == *app && is_there && entry.spent_at.is_none()
        });
        let mut rows: Vec<SignalRow> = unspent
            .map(|(key, entry)| SignalRow {
                scope: key.scope.clone(),
                kind: key.kind.clone(),
                key: key.key.clone(),
                data: entry.data.value().clone(),
                recorded_at: entry.recorded_at,
                now,
            })
            .collect();
        rows.sort_by_key(|row| row.recorded_at);
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        rows
    }

    pub(super) fn session_list(&self, app: &App, now: Timestamp) -> Vec<SessionRow> {
        let living =
            self.sessions.values().filter(|entry| entry.report.app == *app && !entry.report.ended);
        let mut rows: Vec<SessionRow> = living
            .map(|entry| SessionRow {
                session: entry.report.session,
                name: entry.report.name.clone(),
                mode: entry.report.mode,
                offers: entry.report.offers.clone(),
                tree: entry.report.tree,
                slots: entry.report.slots,
                busy: entry.report.busy,
                stuck: entry.report.stuck,
                seen_at: entry.seen_at,
                now,
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.seen_at, row.session)));
        rows
    }

    pub(super) fn app_health(&self, app: &App, now: Timestamp) -> AppHealth {
        let runs: Vec<&Run> = self
            .runs
            .values()
            .map(|entry| &entry.run)
            .filter(|run| run.origin.app == *app)
            .collect();
        let events: Vec<&EventEntry> =
            self.events.values().filter(|entry| entry.app == *app).collect();
        let with = |status| {
            events.iter().filter(|entry| entry.status == status && !entry.is_expired).count() as u64
        };
        let pending = events.iter().filter(|entry| entry.is_pending());
        let in_state = |state| runs.iter().filter(|run| run.state() == state).count() as u64;
        let due_by_footprint = due_by_footprint(&runs, Mode::Execute, now);
        let dry_runs = self::due_by_footprint(&runs, Mode::DryRun, now);
        let mut health = AppHealth {
            now,
            runs: RunState::ALL.iter().map(|state| (*state, in_state(*state))).collect(),
            oldest_due: due_by_footprint.iter().map(|(_, _, oldest)| *oldest).min(),
            due_by_footprint,
            dry_runs_due: dry_runs.iter().map(|(_, count, _)| count).sum(),
            exhausted: runs.iter().filter(|run| is_exhausted(run)).count() as u64,
            events_pending: pending.clone().count() as u64,
            oldest_pending_event: pending.map(|entry| entry.recorded_at).min(),
            events_dead_lettered: with(EventStatus::DeadLettered),
            events_unmatched: with(EventStatus::Unmatched),
            deleting: self
                .deleting
                .keys()
                .filter(|place| place.app == *app)
                .take(100)
                .cloned()
                .collect(),
            ..AppHealth::default()
        };
        for (run, effect) in runs.iter().filter_map(|run| Some((run, run.effect()?))) {
            if let Some(standing) = Standing::of(run.state(), effect.state) {
                health.count_effects(standing, 1, Some(effect.since));
            }
        }
        health
    }

    pub(super) fn run_timeline(&self, span: &RunSpan) -> Vec<RunCount> {
        let mut counts: BTreeMap<(u32, RunState), RunCount> = BTreeMap::new();
        let runs = self.runs.values().map(|entry| &entry.run);
        let shown = runs.filter(|run| {
            let origin = &run.origin;
            let is_listed = origin.mode == Mode::Execute && origin.parent.is_none();
            is_of(origin, &span.app, span.scope.as_ref()) && is_listed
        });
        for run in shown {
            let Some(slice) = span.slice_of(run.origin.created_at) else { continue };
            let state = run.state();
            let lag = run.started_at.map(|at| at.since(run.origin.created_at));
            let empty = RunCount { slice, state, count: 0, worst_lag: None };
            let entry = counts.entry((slice, state)).or_insert(empty);
            entry.count += 1;
            entry.worst_lag = entry.worst_lag.max(lag);
        }
        counts.into_values().collect()
    }

    pub(super) fn audit_list(&self, app: &App, scope: Option<&Scope>, limit: u32) -> Vec<AuditRow> {
        let of_place = self
            .audit
            .iter()
            .rev()
            .filter(|(of, row)| of == app && scope.is_none_or(|scope| row.scope == *scope));
        of_place
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .map(|(_, row)| row.clone())
            .collect()
    }
}

fn is_of(origin: &Origin, app: &App, scope: Option<&Scope>) -> bool {
    origin.app == *app && scope.is_none_or(|scope| origin.scope == *scope)
}

fn is_wanted(run: &Run, filter: &RunFilter) -> bool {
    let origin = &run.origin;
    filter.app.as_ref().is_none_or(|app| origin.app == *app)
        && filter.scope.as_ref().is_none_or(|scope| origin.scope == *scope)
        && filter.workflow.as_ref().is_none_or(|key| origin.workflow == *key)
        && (filter.states.is_empty() || filter.states.contains(&run.state()))
        && filter.mode.is_none_or(|mode| origin.mode == mode)
        && filter.since.is_none_or(|since| origin.created_at >= since)
        && filter.event.is_none_or(|event| origin.event == Some(event))
        && is_in_tree(origin, filter)
}

/// Children are hidden, unless their parent is named or all are wanted.
fn is_in_tree(origin: &Origin, filter: &RunFilter) -> bool {
    let parent = origin.parent.as_ref().map(|parent| parent.run);
    filter.parent == parent || (filter.parent.is_none() && filter.children)
}

fn is_exhausted(run: &Run) -> bool {
    matches!(&run.phase, Phase::Failed { error, .. } if error.code == Code::RETRY_EXHAUSTED)
}

/// Lists never show payloads.
fn without_result(run: &Run) -> Run {
    let mut run = run.clone();
    if let Phase::Succeeded { result, .. } = &mut run.phase {
        *result = Value::Null;
    }
    run
}

fn due_by_footprint(runs: &[&Run], mode: Mode, now: Timestamp) -> Vec<(String, u64, Timestamp)> {
    let mut due: BTreeMap<&str, (u64, Timestamp)> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.origin.mode == mode) {
        if let Some(at) = run.claimable_at().filter(|at| *at <= now) {
            let (count, oldest) = due.entry(&run.origin.footprint).or_insert((0, at));
            *count += 1;
            *oldest = at.min(*oldest);
        }
    }
    due.into_iter().map(|(hash, (count, oldest))| (hash.to_owned(), count, oldest)).collect()
}

fn event_row(event: EventId, entry: &EventEntry) -> EventRow {
    EventRow {
        event,
        scope: entry.scope.clone(),
        kind: entry.kind.clone(),
        dedupe_key: entry.dedupe_key.clone(),
        tags: entry.tags.clone(),
        status: entry.status,
        matched: entry.matched,
        attempts: entry.attempts,
        error: entry.error.clone(),
        occurred_at: entry.occurred_at,
        recorded_at: entry.recorded_at,
        runs: entry.runs.clone(),
        is_expired: entry.is_expired,
    }
}

/// The first page of a list, and where the next one begins.
fn cut<T>(mut rows: Vec<T>, limit: u32, cursor: impl Fn(&T) -> String) -> (Vec<T>, Option<String>) {
    let limit = usize::try_from(limit.clamp(1, 1_000)).unwrap_or(1_000);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = if more { rows.last().map(cursor) } else { None };
    (rows, next)
}

/// A place between rows, not a number of rows: what is inserted meanwhile moves nothing.
fn write_cursor<Id: std::fmt::Display>((at, id): (Timestamp, Id)) -> String {
    format!("{}.{id}", at.micros())
}

fn read_cursor<Id: std::str::FromStr>(text: &str) -> Result<(Timestamp, Id), StoreError> {
    let parts = text.split_once('.');
    let place = parts.and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    let place = place.map(|(at, id)| (Timestamp::from_micros(at), id));
    place
        .ok_or_else(|| StoreError::Refused(format!("`{text}` is not a cursor of this list").into()))
}
