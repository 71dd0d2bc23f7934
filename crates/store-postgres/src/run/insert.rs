//! New runs.

use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use surefoot_kernel_core::{Run, TraceContext, actor_of};

use super::columns::{Statement, States};
use super::row::json_opt;
use crate::budget;
use crate::error::Fault;
use crate::keys::Key;
use crate::sql;

/// What a run is started with, as stored: JSON text, byte for byte. A child shares its root's context and
/// authorization, and has none of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartedWith<'a> {
    pub(crate) data: &'a str,
    pub(crate) context: Option<&'a str>,
    pub(crate) authorization: Option<&'a Value>,
    pub(crate) trace: Option<&'a TraceContext>,
}

pub(crate) async fn insert(
    conn: &mut PgConnection,
    run: &Run,
    with: StartedWith<'_>,
) -> Result<(), Fault> {
    insert_all(conn, &[(run, with)]).await
}

pub(crate) async fn insert_all(
    conn: &mut PgConnection,
    runs: &[(&Run, StartedWith<'_>)],
) -> Result<(), Fault> {
    if runs.is_empty() {
        return Ok(());
    }
    let (mut origins, mut states) = (Origins::default(), States::default());
    for (run, _) in runs {
        origins.push(run);
        states.push(run, None, None)?;
    }
    let query = origins.bind(sqlx::query(sql::RUN_INSERT));
    states.bind(query).execute(&mut *conn).await?;
    payloads(conn, runs).await?;
    budget::open(conn, runs.iter().map(|(run, _)| *run)).await
}

async fn payloads(conn: &mut PgConnection, runs: &[(&Run, StartedWith<'_>)]) -> Result<(), Fault> {
    let (mut ids, mut data, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut authorizations, mut actors, mut traces) = (Vec::new(), Vec::new(), Vec::new());
    for (run, with) in runs {
        ids.push(run.id.key());
        data.push(with.data);
        contexts.push(with.context);
        authorizations.push(json_opt(with.authorization)?);
        actors.push(json_opt(actor_of(with.authorization).as_ref())?);
        traces.push(json_opt(with.trace)?);
    }
    sqlx::query(sql::RUN_PAYLOAD_WRITE)
        .bind(ids)
        .bind(data)
        .bind(contexts)
        .bind(authorizations)
        .bind(actors)
        .bind(traces)
        .execute(conn)
        .await?;
    Ok(())
}

/// What never changes, in the order of the table.
#[derive(Default)]
pub(crate) struct Origins<'a> {
    ids: Vec<Uuid>,
    apps: Vec<&'a str>,
    scopes: Vec<&'a str>,
    workflows: Vec<&'a str>,
    versions: Vec<Uuid>,
    footprints: Vec<&'a str>,
    modes: Vec<&'static str>,
    events: Vec<Option<Uuid>>,
    triggers: Vec<Option<&'a str>>,
    occurred: Vec<i64>,
    roots: Vec<Uuid>,
    parent_runs: Vec<Option<Uuid>>,
    parent_steps: Vec<Option<&'a str>>,
    parent_indexes: Vec<Option<i64>>,
    parent_depths: Vec<Option<i64>>,
    created: Vec<i64>,
}

impl<'a> Origins<'a> {
    pub(crate) fn push(&mut self, run: &'a Run) {
        let origin = &run.origin;
        let parent = origin.parent.as_ref();
        self.ids.push(run.id.key());
        self.apps.push(origin.app.as_str());
        self.scopes.push(origin.scope.as_str());
        self.workflows.push(origin.workflow.as_str());
        self.versions.push(origin.version.key());
        self.footprints.push(&origin.footprint);
        self.modes.push(origin.mode.as_str());
        self.events.push(origin.event.map(Key::key));
        self.triggers.push(origin.trigger.as_deref());
        self.occurred.push(origin.occurred_at.micros());
        self.roots.push(origin.root.key());
        self.parent_runs.push(parent.map(|parent| parent.run.key()));
        self.parent_steps.push(parent.map(|parent| parent.step.as_str()));
        self.parent_indexes.push(parent.map(|parent| i64::from(parent.index)));
        self.parent_depths.push(parent.map(|parent| i64::from(parent.depth)));
        self.created.push(origin.created_at.micros());
    }

    pub(crate) fn bind(self, query: Statement<'a>) -> Statement<'a> {
        query
            .bind(self.ids)
            .bind(self.apps)
            .bind(self.scopes)
            .bind(self.workflows)
            .bind(self.versions)
            .bind(self.footprints)
            .bind(self.modes)
            .bind(self.events)
            .bind(self.triggers)
            .bind(self.occurred)
            .bind(self.roots)
            .bind(self.parent_runs)
            .bind(self.parent_steps)
            .bind(self.parent_indexes)
            .bind(self.parent_depths)
            .bind(self.created)
    }
}
