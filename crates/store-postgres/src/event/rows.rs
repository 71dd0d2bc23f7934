//! Events, deliveries and runs as `event/emit` takes them.

use uuid::Uuid;

use surefoot_kernel_core::{Run, Timestamp, WorkflowKey, actor_of};

use super::emit::{Match, Record};
use crate::composite::composite;
use crate::error::Fault;
use crate::keys::Key;
use crate::retention::place::stripe;
use crate::run::columns::RunRow;
use crate::run::entry::Facts;
use crate::run::row::json_opt;

/// Everything of a batch of events.
#[derive(Debug, Default)]
pub(super) struct Rows<'a> {
    pub(super) events: Vec<NewEvent<'a>>,
    pub(super) deliveries: Vec<Delivery<'a>>,
    pub(super) rows: Vec<RunRow<'a>>,
    pub(super) runs: Vec<NewRun>,
    /// What is journaled of them from the beginning.
    pub(super) facts: Vec<Facts<'a>>,
}

impl<'a> Rows<'a> {
    pub(super) fn push(&mut self, record: &'a Record<'_>) -> Result<(), Fault> {
        self.events.push(NewEvent::of(record)?);
        if record.runs.is_empty() {
            for (position, matched) in (0_i64..).zip(&record.matches) {
                self.deliveries.push(Delivery::of(record.emit.id.key(), position, matched)?);
            }
        }
        let event = i64::try_from(self.events.len()).unwrap_or(i64::MAX);
        for (new, matched) in record.runs.iter().zip(&record.matches) {
            let run = new.run();
            self.rows.push(RunRow::new(run)?);
            self.runs.push(NewRun::of(record, run, matched)?);
            self.facts.extend(new.journal().map(|text| Facts::new(event, run, text)));
        }
        Ok(())
    }
}

composite! {
    /// What occurred, and what becomes of it. Without a time of its own it occurs when it is recorded.
    pub(super) struct NewEvent<'a> as "surefoot.new_event" {
        id: Uuid,
        place: i32,
        app: &'a str,
        scope: &'a str,
        kind: &'a str,
        dedupe_key: Option<&'a str>,
        target: Option<&'a str>,
        payload_hash: String,
        occurred_at: Option<i64>,
        matched: i64,
        runs: Vec<Uuid>,
        status: &'static str,
        data: &'a str,
        context: &'a str,
        authorization: Option<String>,
        trace: Option<String>,
        tags: Option<String>,
    }
}

impl<'a> NewEvent<'a> {
    fn of(record: &'a Record<'_>) -> Result<Self, Fault> {
        let (emit, event) = (record.emit, &record.emit.event);
        Ok(Self {
            id: emit.id.key(),
            place: stripe(emit.app.as_str(), emit.scope.as_str()),
            app: emit.app.as_str(),
            scope: emit.scope.as_str(),
            kind: &event.kind,
            dedupe_key: event.dedupe_key.as_deref(),
            target: event.target.as_ref().map(WorkflowKey::as_str),
            payload_hash: event.payload_hash(),
            occurred_at: event.occurred_at.map(Timestamp::micros),
            matched: i64::from(record.matched()),
            runs: record.runs.iter().map(|new| new.run().id.key()).collect(),
            status: record.status(),
            data: event.data.text(),
            context: event.context.text(),
            authorization: json_opt(event.authorization.as_ref())?,
            trace: json_opt(event.trace.as_ref())?,
            tags: json_opt((!event.tags.is_empty()).then_some(&event.tags))?,
        })
    }
}

composite! {
    /// A run that is created later.
    pub(super) struct Delivery<'a> as "surefoot.delivery" {
        event: Uuid,
        position: i64,
        run: Uuid,
        workflow: &'a str,
        version: Uuid,
        footprint: &'a str,
        trigger_kind: Option<&'a str>,
        authorization: Option<String>,
    }
}

impl<'a> Delivery<'a> {
    fn of(event: Uuid, position: i64, matched: &'a Match) -> Result<Self, Fault> {
        let start = &matched.found.start;
        Ok(Self {
            event,
            position,
            run: matched.run.key(),
            workflow: start.workflow.as_str(),
            version: start.version.key(),
            footprint: &start.footprint,
            trigger_kind: start.trigger.as_deref(),
            authorization: json_opt(start.authorization.as_ref())?,
        })
    }
}

composite! {
    /// What a run that is created at once has beside its row.
    pub(super) struct NewRun as "surefoot.new_run" {
        run: Uuid,
        event: Uuid,
        authorization: Option<String>,
        actor: Option<String>,
        version: Uuid,
        has_budget: bool,
    }
}

impl NewRun {
    fn of(record: &Record<'_>, run: &Run, matched: &Match) -> Result<Self, Fault> {
        let authorization = record.authorization(matched);
        Ok(Self {
            run: run.id.key(),
            event: record.emit.id.key(),
            authorization: json_opt(authorization)?,
            actor: json_opt(actor_of(authorization).as_ref())?,
            version: run.origin.version.key(),
            has_budget: matched.found.has_budget,
        })
    }
}
