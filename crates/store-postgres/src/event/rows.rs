//! Events, deliveries and runs as arrays, one per column: what `event/emit` makes rows of again.

use uuid::Uuid;

use surefoot_kernel_core::{WorkflowKey, actor_of};

use super::emit::{Match, Record};
use crate::error::Fault;
use crate::keys::Key;
use crate::retention::place::stripe;
use crate::run::columns::{Statement, States};
use crate::run::insert::Origins;
use crate::run::row::json_opt;

/// Everything of a batch of events, in the order of the statement's parameters.
#[derive(Default)]
pub(super) struct Rows<'a> {
    events: Events<'a>,
    deliveries: Deliveries<'a>,
    origins: Origins<'a>,
    states: States,
    authorizations: Vec<Option<String>>,
    actors: Vec<Option<String>>,
    tags: Vec<Option<String>>,
}

impl<'a> Rows<'a> {
    pub(super) fn push(&mut self, record: &'a Record<'_>) -> Result<(), Fault> {
        self.events.push(record)?;
        let tags = &record.emit.event.tags;
        self.tags.push(json_opt((!tags.is_empty()).then_some(tags))?);
        if record.runs.is_empty() {
            for (position, matched) in (0_i64..).zip(&record.matches) {
                self.deliveries.push(record.emit.id.key(), position, matched)?;
            }
        }
        for (run, matched) in record.runs.iter().zip(&record.matches) {
            let authorization = record.authorization(matched);
            self.origins.push(run);
            self.states.push(run, None, None)?;
            self.authorizations.push(json_opt(authorization)?);
            self.actors.push(json_opt(actor_of(authorization).as_ref())?);
        }
        Ok(())
    }

    pub(super) fn bind(self, query: Statement<'a>) -> Statement<'a> {
        let query = self.deliveries.bind(self.events.bind(query));
        let query = self.states.bind(self.origins.bind(query));
        query.bind(self.authorizations).bind(self.actors).bind(self.tags)
    }
}

#[derive(Default)]
struct Events<'a> {
    ids: Vec<Uuid>,
    places: Vec<i32>,
    apps: Vec<&'a str>,
    scopes: Vec<&'a str>,
    kinds: Vec<&'a str>,
    dedupe_keys: Vec<Option<&'a str>>,
    targets: Vec<Option<&'a str>>,
    payload_hashes: Vec<String>,
    occurred: Vec<i64>,
    recorded: Vec<i64>,
    matched: Vec<i64>,
    statuses: Vec<&'static str>,
    data: Vec<&'a str>,
    contexts: Vec<&'a str>,
    authorizations: Vec<Option<String>>,
    traces: Vec<Option<String>>,
}

impl<'a> Events<'a> {
    fn push(&mut self, record: &'a Record<'_>) -> Result<(), Fault> {
        let (emit, event) = (record.emit, &record.emit.event);
        self.ids.push(emit.id.key());
        self.places.push(stripe(emit.app.as_str(), emit.scope.as_str()));
        self.apps.push(emit.app.as_str());
        self.scopes.push(emit.scope.as_str());
        self.kinds.push(&event.kind);
        self.dedupe_keys.push(event.dedupe_key.as_deref());
        self.targets.push(event.target.as_ref().map(WorkflowKey::as_str));
        self.payload_hashes.push(event.payload_hash());
        self.occurred.push(record.occurred_at().micros());
        self.recorded.push(record.now.micros());
        self.matched.push(i64::from(record.matched()));
        self.statuses.push(record.status());
        self.data.push(event.data.text());
        self.contexts.push(event.context.text());
        self.authorizations.push(json_opt(event.authorization.as_ref())?);
        self.traces.push(json_opt(event.trace.as_ref())?);
        Ok(())
    }

    fn bind(self, query: Statement<'a>) -> Statement<'a> {
        query
            .bind(self.ids)
            .bind(self.places)
            .bind(self.apps)
            .bind(self.scopes)
            .bind(self.kinds)
            .bind(self.dedupe_keys)
            .bind(self.targets)
            .bind(self.payload_hashes)
            .bind(self.occurred)
            .bind(self.recorded)
            .bind(self.matched)
            .bind(self.statuses)
            .bind(self.data)
            .bind(self.contexts)
            .bind(self.authorizations)
            .bind(self.traces)
    }
}

#[derive(Default)]
struct Deliveries<'a> {
    events: Vec<Uuid>,
    positions: Vec<i64>,
    runs: Vec<Uuid>,
    workflows: Vec<&'a str>,
    versions: Vec<Uuid>,
    footprints: Vec<&'a str>,
    triggers: Vec<Option<&'a str>>,
    authorizations: Vec<Option<String>>,
}

impl<'a> Deliveries<'a> {
    fn push(&mut self, event: Uuid, position: i64, matched: &'a Match) -> Result<(), Fault> {
        self.events.push(event);
        self.positions.push(position);
        self.runs.push(matched.run.key());
        self.workflows.push(matched.workflow.as_str());
        self.versions.push(matched.version.key());
        self.footprints.push(&matched.footprint);
        self.triggers.push(matched.trigger.as_deref());
        self.authorizations.push(json_opt(matched.authorization.as_ref())?);
        Ok(())
    }

    fn bind(self, query: Statement<'a>) -> Statement<'a> {
        query
            .bind(self.events)
            .bind(self.positions)
            .bind(self.runs)
            .bind(self.workflows)
            .bind(self.versions)
            .bind(self.footprints)
            .bind(self.triggers)
            .bind(self.authorizations)
    }
}
