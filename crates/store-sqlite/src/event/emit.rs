//! Events: recorded once. Those that may have been recorded before are looked at one by one.

use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{
    Dispatch, Emission, Emit, EmitError, EventId, Mode, Origin, Run, RunId, StoreError, Timestamp,
    TraceContext, VersionId, WorkflowKey,
};

use super::dispatch::create_runs;
use super::record::record;
use crate::error::{Fault, Said};
use crate::retention::place::place_of;
use crate::run::insert::StartedWith;
use crate::sql;

/// What an event matched: one run that it starts.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    pub(crate) run: RunId,
    pub(crate) workflow: WorkflowKey,
    pub(crate) version: VersionId,
    pub(crate) footprint: String,
    pub(crate) trigger: Option<String>,
    /// The activation's snapshot.
    pub(crate) authorization: Option<Value>,
}

/// What the runs of an event have from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded<'a> {
    pub(crate) event: EventId,
    pub(crate) app: &'a str,
    pub(crate) scope: &'a str,
    pub(crate) occurred_at: Timestamp,
    pub(crate) data: &'a str,
    pub(crate) context: &'a str,
    pub(crate) authorization: Option<&'a Value>,
    pub(crate) trace: Option<&'a TraceContext>,
}

/// The caller holds a write transaction.
pub(crate) async fn emit(
    conn: &mut SqliteConnection,
    emit: &Emit,
    now: Timestamp,
) -> Result<Emission, EmitError> {
    let known = known(conn, emit).await?;
    if let Some(workflow) = known.try_get("deleting").map_err(Fault::from)? {
        let place = place_of(emit.app.as_str(), emit.scope.as_str(), workflow);
        return Err(EmitError::BeingDeleted { place });
    }
    Ok(match known.try_get::<Option<i64>, _>("no").map_err(Fault::from)? {
        Some(no) => repeated(conn, emit, (no, &known), now).await?,
        None => record(conn, &[emit], now).await?.pop().ok_or_else(unreadable)?,
    })
}

/// The event that was recorded under this id, or this key, before; and whether its place is being deleted.
async fn known(conn: &mut SqliteConnection, emit: &Emit) -> Result<SqliteRow, Fault> {
    let query = sqlx::query(sql::EVENT_ORIGINAL)
        .bind(emit.id.to_bytes().to_vec())
        .bind(emit.app.as_str())
        .bind(emit.scope.as_str())
        .bind(&*emit.event.kind)
        .bind(emit.event.dedupe_key.as_deref())
        .bind(emit.event.target.as_ref().map_or("", WorkflowKey::as_str));
    Ok(query.fetch_one(conn).await?)
}

async fn repeated(
    conn: &mut SqliteConnection,
    emit: &Emit,
    (no, original): (i64, &SqliteRow),
    now: Timestamp,
) -> Result<Emission, Fault> {
    let mut emission = Emission::of(read_event_id(original)?);
    emission.new = false;
    emission.matched = original.try_get("matched")?;
    emission.same_payload =
        original.try_get::<&str, _>("payload_hash")? == emit.event.payload_hash();
    let tags: Vec<String> = read_json(original, "tags")?.unwrap_or_default();
    emission.same_tags = tags == emit.event.tags;
    let status: &str = original.try_get("status")?;
    let is_pending = status == "pending" || status == "retrying";
    emission.runs = if is_pending && emit.event.dispatch == Dispatch::Now {
        create_runs(conn, no, now).await?.0
    } else {
        unpacked(original.try_get("runs")?)
    };
    Ok(emission)
}

pub(crate) fn new_run(recorded: Recorded<'_>, matched: &Match, now: Timestamp) -> Run {
    let origin = Origin {
        app: recorded.app.into(),
        scope: recorded.scope.into(),
        workflow: matched.workflow.clone(),
        version: matched.version,
        footprint: matched.footprint.clone(),
        mode: Mode::Execute,
        event: Some(recorded.event),
        trigger: matched.trigger.clone(),
        occurred_at: recorded.occurred_at,
        root: matched.run,
        parent: None,
        created_at: now,
    };
    Run::new(matched.run, origin)
}

/// What a run that an event starts has from it.
pub(super) fn started_with<'a>(recorded: Recorded<'a>, matched: &'a Match) -> StartedWith<'a> {
    // The emitter's word wins, even if no actor can be read from it.
    let authorization = recorded.authorization.or(matched.authorization.as_ref());
    let (data, trace) = (recorded.data, recorded.trace);
    StartedWith { data, context: Some(recorded.context), authorization, trace, journal: None }
}

/// Run ids side by side, as an event keeps them.
pub(crate) fn packed(runs: &[RunId]) -> Vec<u8> {
    runs.iter().flat_map(|run| run.to_bytes()).collect()
}

pub(crate) fn unpacked(bytes: &[u8]) -> Vec<RunId> {
    bytes.as_chunks().0.iter().map(|id| RunId::from_bytes(*id)).collect()
}

pub(crate) fn read_event_id(row: &SqliteRow) -> Result<EventId, Fault> {
    sixteen(row, "id").map(EventId::from_bytes)
}

/// Sixteen bytes of a column outside of runs.
pub(crate) fn sixteen(row: &SqliteRow, column: &str) -> Result<[u8; 16], Fault> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes.try_into().map_err(|_| unreadable())
}

/// JSON of a column outside of runs.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(
    row: &SqliteRow,
    column: &str,
) -> Result<Option<T>, Fault> {
    let text: Option<&str> = row.try_get(column)?;
    text.map(|text| from_stored(text).map_err(|_| unreadable())).transpose()
}

pub(crate) fn unreadable() -> Fault {
    Fault(StoreError::Unavailable(Box::new(Said("a stored row is not what the kernel wrote"))))
}
