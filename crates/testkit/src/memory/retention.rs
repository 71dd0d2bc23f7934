//! What ends: payloads that expire, runs that are pruned, workflows and scopes that are deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use surefoot_kernel_core::payload::Payload;
use surefoot_kernel_core::retention::{
    Force, HeldBy, event_held_by, events_expire_before, run_held_by,
};
use surefoot_kernel_core::{
    App, Audit, AuditRow, Delete, Deleted, EventId, EventStatus, Expired, OpenEffectRow, Place,
    Prunable, Prune, Pruned, Redrive, Redriven, RetentionError, Run, RunId, RunState, Scope,
    Timestamp, WorkflowKey,
};

use super::state::{EventEntry, State};

/// How many of what holds a deletion up are listed.
const LISTED: usize = 100;

impl State {
    /// What is being deleted, if the place is that or inside it.
    pub(super) fn being_deleted(
        &self,
        app: &App,
        scope: &Scope,
        workflow: Option<&WorkflowKey>,
    ) -> Option<Place> {
        self.deleting.keys().find(|place| place.holds(app, scope, workflow)).cloned()
    }

    pub(super) fn event_expire(&mut self, app: &App, limit: u32, now: Timestamp) -> Expired {
        let before = events_expire_before(now);
        let is_old = |entry: &EventEntry| entry.ended_at.is_some_and(|at| at <= before);
        let due = self.events.iter().filter(|(_, entry)| entry.app == *app && is_old(entry));
        let due = due.filter(|(_, entry)| !entry.is_expired && !self.is_referred_to(entry));
        let due: Vec<EventId> = due.map(|(id, _)| *id).collect();
        let (now, more) = cut(due, limit);
        let emptied = self.empty(&now);
        Expired { emptied, more }
    }

    /// Whether a living run stems from the event.
    fn is_referred_to(&self, entry: &EventEntry) -> bool {
        let mut runs = self.runs.values().map(|entry| &entry.run);
        runs.any(|run| entry.runs.contains(&run.origin.root) && event_held_by(run.state()))
    }

    fn empty(&mut self, events: &[EventId]) -> u32 {
        let Ok(nothing) = Payload::from_value(&Value::Null).map(Arc::new) else { return 0 };
        for event in events {
            let Some(entry) = self.events.get_mut(event) else { continue };
            entry.data = nothing.clone();
            entry.context = nothing.clone();
            entry.authorization = None;
            entry.trace = None;
            entry.deliveries.clear();
            entry.is_expired = true;
        }
        count(events.len())
    }

    pub(super) fn event_redrive(
        &mut self,
        redrive: &Redrive,
        now: Timestamp,
    ) -> Result<Redriven, RetentionError> {
        let event = redrive.event;
        let missing = || RetentionError::NotFound { what: format!("event {event}") };
        let entry = self.events.get_mut(&event).ok_or_else(missing)?;
        if entry.is_expired {
            return Err(RetentionError::Expired { event });
        }
        if entry.status != EventStatus::DeadLettered {
            let status = entry.status.as_str();
            return Err(RetentionError::NotDeadLettered { event, status });
        }
        let gone = |version| !self.versions.contains_key(&version);
        let gone: Vec<_> = entry.deliveries.extract_if(.., |it| gone(it.version)).collect();
        let dropped: Vec<WorkflowKey> = gone.into_iter().map(|it| it.workflow).collect();
        let has_some = !entry.deliveries.is_empty();
        entry.status = if has_some { EventStatus::Pending } else { EventStatus::Unmatched };
        entry.ended_at = (!has_some).then_some(now);
        (entry.attempts, entry.error, entry.due_at) = (0, None, now);
        let redriven = Redriven { deliveries: count(entry.deliveries.len()), dropped };
        let place = Place { app: entry.app.clone(), scope: entry.scope.clone(), workflow: None };
        for audit in redrive.audit(&redriven) {
            self.audit_at(&place, audit, now);
        }
        Ok(redriven)
    }

    pub(super) fn prune(&mut self, prune: &Prune, now: Timestamp) -> Pruned {
        let pruned = self.prune_what(prune);
        if let (Some(audit), true) = (&prune.audit, pruned.deleted > 0) {
            let scope = prune.scope.clone().unwrap_or_else(|| Scope::from(""));
            let place = Place { app: prune.app.clone(), scope, workflow: None };
            self.audit_at(&place, audit.clone(), now);
        }
        pruned
    }

    fn prune_what(&mut self, prune: &Prune) -> Pruned {
        match &prune.what {
            Prunable::Runs { states } => self.prune_runs(prune, states),
            Prunable::SpentSignals => {
                let fits = |key: &super::state::SignalKey| {
                    key.app == prune.app
                        && prune
                            .scope
                            .as_ref()
                            .is_none_or(|scope| key.scope.as_ref() == Some(scope))
                };
                let spent = self.signals.iter().filter(|(key, entry)| {
                    fits(key) && entry.spent_at.is_some_and(|at| at < prune.before)
                });
                let spent = spent.map(|(key, _)| key.clone()).collect();
                let (now, more) = cut(spent, prune.limit);
                now.iter().for_each(|key| drop(self.signals.remove(key)));
                Pruned { deleted: count(now.len()), more }
            }
            Prunable::UnmatchedPayloads => {
                let fits = |entry: &EventEntry| {
                    entry.app == prune.app
                        && prune.scope.as_ref().is_none_or(|scope| entry.scope == *scope)
                        && entry.status == EventStatus::Unmatched
                        && entry.recorded_at < prune.before
                        && !entry.is_expired
                };
                let old = self.events.iter().filter(|(_, entry)| fits(entry));
                let (now, more) = cut(old.map(|(id, _)| *id).collect(), prune.limit);
                Pruned { deleted: self.empty(&now), more }
            }
            Prunable::Audit => {
                let fits = |(app, row): &(App, AuditRow)| {
                    *app == prune.app
                        && prune.scope.as_ref().is_none_or(|scope| row.scope == *scope)
                        && row.at < prune.before
                };
                let limit = usize::try_from(prune.limit).unwrap_or(usize::MAX);
                let all = self.audit.iter().filter(|row| fits(row)).count();
                let mut left = all.min(limit);
                let deleted = count(left);
                self.audit.retain(|row| {
                    let goes = left > 0 && fits(row);
                    left -= usize::from(goes);
                    !goes
                });
                Pruned { deleted, more: all > limit }
            }
        }
    }

    fn prune_runs(&mut self, prune: &Prune, states: &[RunState]) -> Pruned {
        let fits = |run: &Run| {
            run.origin.parent.is_none()
                && run.origin.app == prune.app
                && prune.scope.as_ref().is_none_or(|scope| run.origin.scope == *scope)
                && states.contains(&run.state())
                && run.ended_at.is_some_and(|at| at < prune.before)
        };
        let roots: Vec<RunId> =
            self.runs.values().filter(|it| fits(&it.run)).map(|it| it.run.id).collect();
        let (deleted, more) = self.delete_trees(&roots, Force::No, prune.limit);
        Pruned { deleted: count(deleted.len()), more }
    }

    /// Deletes whole trees that nothing holds, until so many runs are gone.
    fn delete_trees(&mut self, roots: &[RunId], force: Force, limit: u32) -> (Vec<RunId>, bool) {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut deleted: Vec<RunId> = Vec::new();
        for root in roots {
            let tree = || self.runs.values().map(|it| &it.run).filter(|it| it.origin.root == *root);
            if tree().any(|run| held_by(run, force).is_some()) {
                continue;
            }
            if deleted.len() >= limit {
                return (deleted, true);
            }
            let tree: BTreeSet<RunId> = tree().map(|run| run.id).collect();
            tree.iter().for_each(|run| drop(self.runs.remove(run)));
            self.tasks.retain(|_, task| !tree.contains(&task.run()));
            self.groups.retain(|(parent, _), _| !tree.contains(parent));
            self.budgets.retain(|root, _| !tree.contains(root));
            deleted.extend(tree);
        }
        (deleted, false)
    }

    pub(super) fn delete_begin(
        &mut self,
        delete: &Delete,
        now: Timestamp,
    ) -> Result<(), RetentionError> {
        let place = &delete.place;
        match self.deleting.get(place).map(|marked| marked.force) {
            None => self.check_deletable(delete)?,
            Some(Force::No) if delete.force == Force::Unexplained => {}
            Some(Force::No | Force::Unexplained) => return Ok(()),
        }
        self.deleting.insert(place.clone(), delete.clone());
        for ((app, scope, key), workflow) in &mut self.workflows {
            if place.holds(app, scope, Some(key)) {
                workflow.active = None;
                workflow.activations.clear();
            }
        }
        self.audit_at(place, delete.audit_begun(), now);
        Ok(())
    }

    fn check_deletable(&self, delete: &Delete) -> Result<(), RetentionError> {
        let place = &delete.place;
        let in_scope = |app: &App, scope: &Scope| place.app == *app && place.scope == *scope;
        let mut workflows = self.workflows.keys();
        let mut is_there = workflows.any(|(app, scope, key)| place.holds(app, scope, Some(key)));
        if place.workflow.is_none() {
            is_there |= self.events.values().any(|entry| in_scope(&entry.app, &entry.scope));
            let scoped = |scope: &Option<Scope>| scope.as_ref() == Some(&place.scope);
            is_there |= self.signals.keys().any(|key| key.app == place.app && scoped(&key.scope));
        }
        if !is_there {
            return Err(RetentionError::NotFound { what: place.to_string() });
        }
        let mut roots = self.shared_roots(place);
        if !roots.is_empty() {
            roots.truncate(LISTED);
            return Err(RetentionError::Shared { roots });
        }
        let effects = self.unexplained(place, delete.force);
        if effects.is_empty() { Ok(()) } else { Err(RetentionError::Unexplained { effects }) }
    }

    fn runs_of<'s>(&'s self, place: &'s Place) -> impl Iterator<Item = &'s Run> {
        let of_root = |run: &Run| {
            self.runs.get(&run.origin.root).map_or(&run.origin, |root| &root.run.origin).clone()
        };
        let is_there = move |run: &&Run| {
            let origin = of_root(run);
            place.holds(&origin.app, &origin.scope, Some(&origin.workflow))
        };
        self.runs.values().map(|entry| &entry.run).filter(is_there)
    }

    /// The other workflows' runs that have children of this one.
    fn shared_roots(&self, place: &Place) -> Vec<RunId> {
        let own: Vec<RunId> = self.runs_of(place).map(|run| run.id).collect();
        let runs = self.runs.values().map(|entry| &entry.run);
        let is_of = |run: &&Run| {
            let origin = &run.origin;
            place.holds(&origin.app, &origin.scope, Some(&origin.workflow))
        };
        let shared = runs.filter(is_of).filter(|run| !own.contains(&run.id));
        let mut roots: Vec<RunId> = shared.map(|run| run.origin.root).collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    fn unexplained(&self, place: &Place, force: Force) -> Vec<OpenEffectRow> {
        let held = self.runs_of(place).filter(|run| held_by(run, force) == Some(HeldBy::Effect));
        let row = |run: &Run| {
            let effect = run.effect()?;
            Some(OpenEffectRow { run: run.id, step: effect.step.clone(), state: effect.state })
        };
        held.filter_map(row).take(LISTED).collect()
    }

    pub(super) fn delete_pass(
        &mut self,
        place: &Place,
        limit: u32,
        now: Timestamp,
    ) -> Result<Deleted, RetentionError> {
        let missing = || RetentionError::NotFound { what: format!("deletion of {place}") };
        let delete = self.deleting.get(place).cloned().ok_or_else(missing)?;
        let force = delete.force;
        let canceled = self.cancel_all(&delete, limit, now);
        let mut done = Deleted { canceled, ..Deleted::default() };
        if done.did_something() {
            return Ok(done);
        }
        done.events = self.delete_events(place, limit);
        if done.did_something() {
            return Ok(done);
        }
        let roots: Vec<RunId> =
            self.runs_of(place).filter(|run| run.id == run.origin.root).map(|run| run.id).collect();
        let (runs, _) = self.delete_trees(&roots, force, limit);
        // Audit rows stay, with ids only.
        let of_gone = |row: &AuditRow| row.run.is_some_and(|run| runs.contains(&run));
        for (_, row) in self.audit.iter_mut().filter(|(_, row)| of_gone(row)) {
            "{}".clone_into(&mut row.details);
        }
        done.runs = count(runs.len());
        if done.did_something() {
            return Ok(done);
        }
        done.unexplained = self.unexplained(place, force);
        let living = self.runs_of(place).filter(|run| held_by(run, force) == Some(HeldBy::Life));
        done.ending = living.count() as u64;
        if !done.unexplained.is_empty() || done.ending > 0 {
            return Ok(done);
        }
        self.delete_rest(&delete, limit, now, done)
    }

    fn delete_rest(
        &mut self,
        delete: &Delete,
        limit: u32,
        now: Timestamp,
        mut done: Deleted,
    ) -> Result<Deleted, RetentionError> {
        let place = &delete.place;
        let roots = self.shared_roots(place);
        if !roots.is_empty() {
            return Err(RetentionError::Shared { roots });
        }
        if place.workflow.is_none() {
            let of_scope = self
                .signals
                .keys()
                .filter(|key| key.app == place.app && key.scope.as_ref() == Some(&place.scope));
            let (signals, _) = cut(of_scope.cloned().collect(), limit);
            signals.iter().for_each(|key| drop(self.signals.remove(key)));
            done.signals = count(signals.len());
            if done.did_something() {
                return Ok(done);
            }
        }
        self.bare_audit(place);
        let before = self.workflows.len();
        self.workflows.retain(|(app, scope, key), _| !place.holds(app, scope, Some(key)));
        self.versions.retain(|_, version| {
            let stored = &version.stored;
            !place.holds(&stored.app, &stored.scope, Some(&stored.workflow))
        });
        done.workflows = count(before - self.workflows.len());
        self.deleting
            .retain(|marked, _| !place.holds(&marked.app, &marked.scope, marked.workflow.as_ref()));
        self.audit_at(place, delete.audit_ended(), now);
        done.done = true;
        Ok(done)
    }

    /// Audit rows of runs that were pruned before stay with ids only, too.
    fn bare_audit(&mut self, place: &Place) {
        let versions = &self.versions;
        let is_there = |row: &AuditRow| {
            let version = row.version.and_then(|version| versions.get(&version));
            let workflow = version.map(|version| &version.stored.workflow);
            place.workflow.is_none() || workflow == place.workflow.as_ref()
        };
        for (app, row) in &mut self.audit {
            let is_in_scope = *app == place.app && row.scope == place.scope;
            if is_in_scope && row.run.is_some() && is_there(row) {
                "{}".clone_into(&mut row.details);
            }
        }
    }

    fn cancel_all(&mut self, delete: &Delete, limit: u32, now: Timestamp) -> u32 {
        let living = self.runs_of(&delete.place);
        let living = living.filter(|run| !run.state().is_terminal() && run.cancel.is_none());
        let (runs, _) = cut(living.map(|run| run.id).collect(), limit);
        for run in &runs {
            // What cannot be canceled any more has ended meanwhile.
            let _ = self.row(*run, delete.cancel(), now);
        }
        count(runs.len())
    }

    fn delete_events(&mut self, place: &Place, limit: u32) -> u32 {
        let of_place = self
            .events
            .iter()
            .filter(|(_, entry)| place.holds(&entry.app, &entry.scope, entry.target.as_ref()));
        let (events, _) = cut(of_place.map(|(id, _)| *id).collect(), limit);
        events.iter().for_each(|event| drop(self.events.remove(event)));
        self.dedupe.retain(|_, event| !events.contains(event));
        count(events.len())
    }

    pub(super) fn audit_at(&mut self, place: &Place, audit: Audit, now: Timestamp) {
        let row = AuditRow {
            scope: place.scope.clone(),
            at: now,
            actor: audit.actor,
            verb: audit.verb,
            reason: audit.reason,
            run: None,
            version: None,
            details: audit.details,
        };
        self.audit.push((place.app.clone(), row));
    }
}

fn held_by(run: &Run, force: Force) -> Option<HeldBy> {
    run_held_by(run.state(), run.effect().map(|effect| effect.state), force)
}

/// At most so many, and whether there are more.
fn cut<T>(mut rows: Vec<T>, limit: u32) -> (Vec<T>, bool) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    (rows, more)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
