//! Events: recorded once, matched when they are recorded.

use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{
    Commit, Dispatch, Emission, Emit, EmitError, EventId, Invocation, Lease, Mode, Origin, Receipt,
    RowInput, Run, RunId, START_EVENT, StoreError, Stored, Timestamp, TraceContext, VersionId,
    WorkflowKey, decide_row,
};

use super::dispatch::create_runs;
use crate::error::{Fault, Said};
use crate::retention::place::place_of;
use crate::run::insert::{StartedWith, insert};
use crate::run::row::json_opt;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

pub(crate) struct Record(pub(crate) Emit);

impl Op for Record {
    type Out = Emission;
    type Err = EmitError;
    const LANE: Lane = Lane::Rest;

    fn bytes(&self) -> usize {
        let event = &self.0.event;
        event.data.text().len().saturating_add(event.context.text().len())
    }

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Emission, EmitError> {
        emit(conn, &self.0, cx.now).await
    }
}

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
        None => record(conn, emit, now).await?,
    })
}

async fn record(
    conn: &mut SqliteConnection,
    emit: &Emit,
    now: Timestamp,
) -> Result<Emission, Fault> {
    let event = &emit.event;
    let matches = matching(conn, emit).await?;
    let create = event.dispatch == Dispatch::Now && !matches.is_empty();
    let runs = if create { ids(&matches) } else { Vec::new() };
    let status = match (matches.is_empty(), create) {
        (true, _) => "unmatched",
        (false, true) => "dispatched",
        (false, false) => "pending",
    };
    let occurred_at = event.occurred_at.unwrap_or(now);
    let matched = u32::try_from(matches.len()).unwrap_or(u32::MAX);
    let inserted = sqlx::query(sql::EVENT_INSERT)
        .bind(emit.id.to_bytes().to_vec())
        .bind(emit.app.as_str())
        .bind(emit.scope.as_str())
        .bind(&*event.kind)
        .bind(event.dedupe_key.as_deref())
        .bind(event.target.as_ref().map(WorkflowKey::as_str))
        .bind(event.payload_hash())
        .bind(occurred_at.micros())
        .bind(now.micros())
        .bind(matched)
        .bind(packed(&runs))
        .bind(status)
        .bind((status == "pending").then_some(now.micros()))
        .bind(create.then_some(now.micros()))
        .bind(json_opt((!event.tags.is_empty()).then_some(&event.tags))?)
        .bind(event.data.text())
        .bind(event.context.text())
        .bind(json_opt(event.authorization.as_ref())?)
        .bind(json_opt(event.trace.as_ref())?)
        .bind(emit.id.to_bytes().to_vec())
        .execute(&mut *conn)
        .await?;
    let no = inserted.last_insert_rowid();
    let mut emission = Emission::of(emit.id);
    emission.matched = matched;
    if create {
        let recorded = Recorded {
            event: emit.id,
            app: emit.app.as_str(),
            scope: emit.scope.as_str(),
            occurred_at,
            data: event.data.text(),
            context: event.context.text(),
            authorization: event.authorization.as_ref(),
            trace: event.trace.as_ref(),
        };
        emission.started = start(conn, (emit, recorded), &matches, now).await?;
        emission.runs = runs;
    } else {
        for (position, matched) in (0_i64..).zip(&matches) {
            write_delivery(conn, no, position, matched).await?;
        }
    }
    Ok(emission)
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

/// Enabled activations of live versions in the same app and scope, in a stable order.
async fn matching(conn: &mut SqliteConnection, emit: &Emit) -> Result<Vec<Match>, Fault> {
    let event = &emit.event;
    // A start is addressed to one workflow, never broadcast.
    if event.kind == START_EVENT && event.target.is_none() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(sql::EVENT_MATCH)
        .bind(emit.app.as_str())
        .bind(emit.scope.as_str())
        .bind(&*event.kind)
        .bind(event.target.as_ref().map(WorkflowKey::as_str))
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            let workflow = WorkflowKey::from(row.try_get::<String, _>("workflow")?);
            let activation: &str = row.try_get("activation")?;
            Ok(Match {
                run: RunId::of_event(emit.id, &workflow, activation),
                workflow,
                version: VersionId::from_bytes(sixteen(row, "version")?),
                footprint: row.try_get("footprint")?,
                trigger: row.try_get("trigger_kind")?,
                authorization: read_json(row, "authorization")?,
            })
        })
        .collect()
}

/// Creates the runs; those that a local worker has slots for are running from the first moment on.
async fn start(
    conn: &mut SqliteConnection,
    (emit, recorded): (&Emit, Recorded<'_>),
    matches: &[Match],
    now: Timestamp,
) -> Result<Vec<Stored>, Fault> {
    let mut started = Vec::new();
    for matched in matches {
        let mut run = new_run(recorded, matched, now);
        if let Some(eager) = &emit.eager
            && started.len() < usize::try_from(eager.slots).unwrap_or(usize::MAX)
            && eager.footprints.contains(&matched.footprint)
        {
            let (owner, length) = (eager.session, eager.lease);
            let lease = Lease { owner, until: now.plus(length), length };
            if let Ok(facts) = decide_row(&run, RowInput::Claim { lease }, now) {
                run = Commit::new(&run, &facts).after;
                let invocation = Invocation::of_event(&emit.event, matched.authorization.as_ref());
                started.push(Stored {
                    receipt: Receipt::attest(&run),
                    run: run.clone(),
                    invocation: Some(invocation),
                    journal: Ok(Vec::new()),
                    now,
                });
            }
        }
        insert_run(conn, &run, recorded, matched).await?;
    }
    Ok(started)
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

pub(crate) async fn insert_run(
    conn: &mut SqliteConnection,
    run: &Run,
    recorded: Recorded<'_>,
    matched: &Match,
) -> Result<(), Fault> {
    // The emitter's word wins, even if no actor can be read from it.
    let authorization = recorded.authorization.or(matched.authorization.as_ref());
    let (data, trace) = (recorded.data, recorded.trace);
    let with = StartedWith { data, context: Some(recorded.context), authorization, trace };
    insert(conn, run, with).await
}

async fn write_delivery(
    conn: &mut SqliteConnection,
    event: i64,
    position: i64,
    matched: &Match,
) -> Result<(), Fault> {
    sqlx::query(sql::EVENT_DELIVERY_WRITE)
        .bind(event)
        .bind(position)
        .bind(matched.run.to_bytes().to_vec())
        .bind(matched.workflow.as_str())
        .bind(matched.version.to_bytes().to_vec())
        .bind(&*matched.footprint)
        .bind(matched.trigger.as_deref())
        .bind(json_opt(matched.authorization.as_ref())?)
        .execute(conn)
        .await?;
    Ok(())
}

fn ids(matches: &[Match]) -> Vec<RunId> {
    matches.iter().map(|matched| matched.run).collect()
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
