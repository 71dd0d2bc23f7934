//! What events match: read once, and kept as long as the catalog stays the same one.
//!
//! Whatever changes what events match changes the catalog's name in the same transaction, and the statement that records
//! events refuses to do so under another name than that of what they matched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{App, Emit, START_EVENT, Scope, VersionId, WorkflowKey};

use crate::error::Fault;
use crate::plan::list::{read_json, read_key};
use crate::sql;

/// Past so many different events everything is forgotten.
const KEPT_MAX: usize = 4096;

/// How a run starts that an event matched.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) workflow: WorkflowKey,
    pub(crate) version: VersionId,
    pub(crate) footprint: String,
    pub(crate) trigger: Option<String>,
    /// The activation's snapshot.
    pub(crate) authorization: Option<Value>,
}

impl Start {
    pub(crate) fn read(row: &PgRow) -> Result<Self, Fault> {
        Ok(Self {
            workflow: WorkflowKey::from(row.try_get::<String, _>("workflow")?),
            version: read_key(row, "version")?,
            footprint: row.try_get("footprint")?,
            trigger: row.try_get("trigger_kind")?,
            authorization: read_json(row, "authorization")?,
        })
    }
}

/// An activation that an event matches: one run that it starts.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) activation: String,
    pub(crate) start: Start,
    /// Whether the version caps what its runs may spend.
    pub(crate) has_budget: bool,
}

/// What an event matches, or why that cannot be read.
pub(crate) type Matches = Result<Arc<[Arc<Found>]>, Fault>;

/// What decides what an event matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct About {
    app: App,
    scope: Scope,
    kind: String,
    target: Option<WorkflowKey>,
}

impl About {
    fn of(emit: &Emit) -> Self {
        Self {
            app: emit.app.clone(),
            scope: emit.scope.clone(),
            kind: emit.event.kind.clone(),
            target: emit.event.target.clone(),
        }
    }

    /// A start is addressed to one workflow, never broadcast.
    fn is_matched(&self) -> bool {
        self.kind != START_EVENT || self.target.is_some()
    }
}

/// What was read of one catalog.
#[derive(Debug, Default)]
struct Kept {
    name: String,
    found: HashMap<About, Arc<[Arc<Found>]>>,
}

/// What events matched so far.
#[derive(Debug, Default)]
pub(crate) struct Catalog(Mutex<Kept>);

impl Catalog {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each of the events matches, and the name of the catalog that says so: enabled activations of live versions
    /// in the same app and scope, in a stable order.
    pub(crate) async fn matches(
        &self,
        conn: &mut PgConnection,
        emits: &[&Emit],
    ) -> Result<(String, Vec<Matches>), sqlx::Error> {
        let about: Vec<About> = emits.iter().map(|emit| About::of(emit)).collect();
        if let Some(known) = self.known(&about) {
            return Ok(known);
        }
        let (name, found) = read(conn, &about).await?;
        let mut kept = self.kept();
        if kept.name != name || kept.found.len() >= KEPT_MAX {
            *kept = Kept { name: name.clone(), ..Kept::default() };
        }
        for (about, found) in about.into_iter().zip(&found) {
            if let Ok(found) = found {
                kept.found.insert(about, found.clone());
            }
        }
        Ok((name, found))
    }

    fn known(&self, about: &[About]) -> Option<(String, Vec<Matches>)> {
        let kept = self.kept();
        let found = about.iter().map(|about| kept.found.get(about).cloned().map(Ok));
        Some((kept.name.clone(), found.collect::<Option<_>>()?))
    }

    /// The catalog is another one.
    pub(crate) fn forget(&self) {
        *self.kept() = Kept::default();
    }
}

async fn read(
    conn: &mut PgConnection,
    about: &[About],
) -> Result<(String, Vec<Matches>), sqlx::Error> {
    let kinds = about.iter().map(|about| about.is_matched().then_some(&*about.kind));
    let targets = about.iter().map(|about| about.target.as_ref().map(WorkflowKey::as_str));
    let rows = sqlx::query(sql::EVENT_MATCH)
        .bind(about.iter().map(|about| about.app.as_str()).collect::<Vec<_>>())
        .bind(about.iter().map(|about| about.scope.as_str()).collect::<Vec<_>>())
        .bind(kinds.collect::<Vec<_>>())
        .bind(targets.collect::<Vec<_>>())
        .fetch_all(conn)
        .await?;
    let name = rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get("catalog")?;
    let mut found: Vec<Result<Vec<Arc<Found>>, Fault>> =
        about.iter().map(|_| Ok(Vec::new())).collect();
    for row in &rows {
        let Some(ord) = row.try_get::<Option<i64>, _>("ord")? else { continue };
        let index = usize::try_from(ord.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(found) = found.get_mut(index) else { continue };
        match (read_found(row), &mut *found) {
            (Ok(one), Ok(found)) => found.push(Arc::new(one)),
            (Err(fault), Ok(_)) => *found = Err(fault),
            (_, Err(_)) => {}
        }
    }
    Ok((name, found.into_iter().map(|found| found.map(Arc::from)).collect()))
}

fn read_found(row: &PgRow) -> Result<Found, Fault> {
    Ok(Found {
        activation: row.try_get("activation")?,
        start: Start::read(row)?,
        has_budget: row.try_get("has_budget")?,
    })
}
