//! Versions and activations.

use std::collections::BTreeSet;
use std::sync::Arc;

use surefoot_kernel_core::{
    Activate, ActivationSet, App, AuditRow, Place, Publish, PublishError, Published, ScheduleRow,
    Schedules, Scope, SetActivation, StoredVersion, Timestamp, VersionId, WorkflowKey, WorkflowRow,
};

use super::state::{State, VersionEntry, WorkflowId};

impl State {
    pub(super) fn version_publish(
        &mut self,
        publish: &Publish,
        now: Timestamp,
    ) -> Result<Published, PublishError> {
        let got = publish.workflow.as_str().chars().count();
        if !(1..=200).contains(&got) {
            return Err(PublishError::KeyLength { got });
        }
        let id = (publish.app.clone(), publish.scope.clone(), publish.workflow.clone());
        self.check_stays(&id)?;
        let workflow = self.workflows.entry(id.clone()).or_default();
        workflow.versions.push(publish.version);
        let revision = workflow.versions.len() as u64;
        let stored = StoredVersion {
            version: publish.version,
            app: publish.app.clone(),
            scope: publish.scope.clone(),
            workflow: publish.workflow.clone(),
            revision,
            created_at: now,
            author: publish.author.clone(),
            active: false,
            plan_hash: publish.plan.hash(),
            footprint: publish.plan.footprint.clone(),
            budget: publish.budget.clone(),
            plan: serde_json::to_string(&publish.plan).unwrap_or_default(),
            source: publish.source.clone(),
        };
        let version = VersionEntry {
            stored: Arc::new(stored),
            footprint: publish.plan.footprint.hash(),
            activations: publish.activations(),
            authorization: publish.authorization.clone(),
        };
        self.versions.insert(publish.version, version);
        if publish.activate {
            self.make_live(&id, publish.version, now);
        }
        let verb = if publish.activate { "publish" } else { "draft" };
        self.audit_version(&id, publish.version, (&publish.author, verb, ""), now);
        Ok(Published::of(publish.version, revision))
    }

    pub(super) fn version_activate(
        &mut self,
        activate: &Activate,
        now: Timestamp,
    ) -> Result<Published, PublishError> {
        let id = (activate.app.clone(), activate.scope.clone(), activate.workflow.clone());
        self.check_stays(&id)?;
        let missing = |what: String| PublishError::NotFound { what };
        let workflow = self
            .workflows
            .get(&id)
            .ok_or_else(|| missing(format!("workflow `{}`", activate.workflow)))?;
        let index = usize::try_from(activate.revision).ok().and_then(|at| at.checked_sub(1));
        let what = || format!("version {} of workflow `{}`", activate.revision, activate.workflow);
        let version =
            *index.and_then(|index| workflow.versions.get(index)).ok_or_else(|| missing(what()))?;
        let active = workflow.active.and_then(|active| self.revision_of(active));
        if activate.expected.is_some() && activate.expected != active {
            return Err(PublishError::NotExpected { expected: activate.expected, active });
        }
        if active == Some(activate.revision) {
            return Ok(Published::of(version, activate.revision));
        }
        self.make_live(&id, version, now);
        let who = (activate.actor.as_str(), "activate", activate.reason.as_str());
        self.audit_version(&id, version, who, now);
        Ok(Published::of(version, activate.revision))
    }

    pub(super) fn activation_set(
        &mut self,
        set: &SetActivation,
        now: Timestamp,
    ) -> Result<ActivationSet, PublishError> {
        let missing = |what: String| PublishError::NotFound { what };
        let id = (set.app.clone(), set.scope.clone(), set.workflow.clone());
        self.check_stays(&id)?;
        let workflow = self.workflows.get_mut(&id);
        let workflow = workflow.ok_or_else(|| missing(format!("workflow `{}`", set.workflow)))?;
        let mut keys: BTreeSet<String> = workflow.known.clone();
        if let Some(key) = &set.activation {
            keys.retain(|known| known == key);
            if keys.is_empty() {
                return Err(missing(format!("activation `{key}` of workflow `{}`", set.workflow)));
            }
        }
        let changed: Vec<String> = if set.enabled {
            keys.into_iter().filter(|key| workflow.disabled.remove(key)).collect()
        } else {
            keys.into_iter().filter(|key| workflow.disabled.insert(key.clone())).collect()
        };
        if set.enabled {
            // What passed while a schedule was off is not its own.
            for key in &changed {
                if let Some((_, since)) = workflow.scheduled.get_mut(key) {
                    *since = now;
                }
            }
        }
        if !changed.is_empty() {
            let place = Place { app: id.0, scope: id.1, workflow: Some(id.2) };
            self.audit_at(&place, set.audit(&changed), now);
        }
        Ok(ActivationSet { changed })
    }

    fn check_stays(&self, (app, scope, workflow): &WorkflowId) -> Result<(), PublishError> {
        match self.being_deleted(app, scope, Some(workflow)) {
            Some(place) => Err(PublishError::BeingDeleted { place }),
            None => Ok(()),
        }
    }

    /// Replaces the activations by key: disabled keys stay disabled, dropped ones no longer match, equal schedules
    /// stand since they first did.
    fn make_live(&mut self, id: &WorkflowId, version: VersionId, now: Timestamp) {
        if let (Some(workflow), Some(entry)) =
            (self.workflows.get_mut(id), self.versions.get(&version))
        {
            workflow.active = Some(version);
            workflow.activations.clone_from(&entry.activations);
            workflow.known.extend(entry.activations.iter().map(|it| it.key.clone()));
            let before = std::mem::take(&mut workflow.scheduled);
            let schedules = entry.activations.iter().filter_map(|activation| {
                let schedule = activation.schedule.clone()?;
                let stood = before.get(&activation.key).filter(|(it, _)| *it == schedule);
                let since = stood.map_or(now, |(_, since)| *since);
                Some((activation.key.clone(), (schedule, since)))
            });
            workflow.scheduled = schedules.collect();
        }
    }

    fn audit_version(
        &mut self,
        (app, scope, _): &WorkflowId,
        version: VersionId,
        (actor, verb, reason): (&str, &str, &str),
        now: Timestamp,
    ) {
        let row = AuditRow {
            scope: scope.clone(),
            at: now,
            actor: actor.to_owned(),
            verb: verb.to_owned(),
            reason: reason.to_owned(),
            run: None,
            version: Some(version),
            details: "{}".to_owned(),
        };
        self.audit.push((app.clone(), row));
    }

    pub(super) fn revision_of(&self, version: VersionId) -> Option<u64> {
        self.versions.get(&version).map(|entry| entry.stored.revision)
    }

    pub(super) fn version_load(&self, version: VersionId) -> Option<StoredVersion> {
        let stored = &self.versions.get(&version)?.stored;
        let id = (stored.app.clone(), stored.scope.clone(), stored.workflow.clone());
        let active = self.workflows.get(&id).is_some_and(|entry| entry.active == Some(version));
        Some(StoredVersion { active, ..(**stored).clone() })
    }

    pub(super) fn workflow_list(&self, app: &App, scope: Option<&Scope>) -> Vec<WorkflowRow> {
        let of_app = self
            .workflows
            .iter()
            .filter(|((of, at, _), _)| of == app && scope.is_none_or(|scope| scope == at));
        let rows = of_app.map(|((_, scope, key), entry)| WorkflowRow {
            scope: scope.clone(),
            workflow: key.clone(),
            active: entry.active.and_then(|version| self.revision_of(version)),
            latest: entry.versions.len() as u64,
            activations: entry
                .activations
                .iter()
                .map(|activation| {
                    let enabled = !entry.disabled.contains(&activation.key);
                    (activation.key.clone(), activation.event.clone(), enabled)
                })
                .collect(),
        });
        rows.collect()
    }

    pub(super) fn schedule_list(&self, app: &App, now: Timestamp) -> Schedules {
        let of_app = self.workflows.iter().filter(|((of, _, _), _)| of == app);
        let rows = of_app.flat_map(|((_, scope, workflow), entry)| {
            entry.scheduled.iter().map(move |(key, (schedule, since))| ScheduleRow {
                scope: scope.clone(),
                workflow: workflow.clone(),
                key: key.clone(),
                schedule: schedule.clone(),
                since: *since,
                enabled: !entry.disabled.contains(key),
            })
        });
        Schedules { now, rows: rows.collect() }
    }

    pub(super) fn version_list(
        &self,
        app: &App,
        scope: &Scope,
        workflow: &WorkflowKey,
    ) -> Vec<StoredVersion> {
        let id = (app.clone(), scope.clone(), workflow.clone());
        let versions = self.workflows.get(&id).into_iter().flat_map(|entry| &entry.versions).rev();
        let without_plan = |version: &VersionId| {
            let (plan, source) = (String::new(), String::new());
            Some(StoredVersion { plan, source, ..self.version_load(*version)? })
        };
        versions.filter_map(without_plan).collect()
    }
}
