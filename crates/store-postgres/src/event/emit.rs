//! Events: recorded once, matched when they are recorded.
//!
//! What events match is read first. One statement then records them, with their runs or with what is to become of
//! them later; it says for itself which of them it recorded, and which were there, or may not be.

use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::{
    Commit, Dispatch, Eager, Emission, Emit, EmitError, EventId, Invocation, Lease, Mode, Origin,
    Place, Receipt, RowInput, Run, RunId, START_EVENT, StoreError, Stored, Timestamp, VersionId,
    WorkflowKey, decide_row,
};

use super::dispatch::start_deferred;
use super::rows::Rows;
use crate::clock::StoreClock;
use crate::error::{Fault, store_error, unavailable};
use crate::keys::Key;
use crate::plan::list::{read_json, read_key, read_small};
use crate::retention::place::place_of;
use crate::sql;

/// How often an event is matched again whose version went away before it was recorded.
const TRIES: usize = 4;

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

/// An event as it is about to be recorded.
pub(crate) struct Record<'a> {
    pub(crate) emit: &'a Emit,
    pub(crate) now: Timestamp,
    pub(crate) matches: Vec<Match>,
    /// One per match, if they are created at once.
    pub(crate) runs: Vec<Run>,
    /// Those that a local worker has slots for: running from the first moment on.
    started: Vec<Stored>,
}

/// What became of an event.
#[derive(Debug)]
pub(crate) enum Answer {
    Done(Emission),
    /// It is there, deferred, and this call wants its runs now.
    Deferred(Emission),
    BeingDeleted(Place),
    /// What it matched was deleted before it was recorded: it is to be matched again.
    Again,
}

/// Why events were not recorded, as far as anybody knows.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Whether it was before the statement that records: then they certainly were not.
    pub(crate) before: bool,
    pub(crate) error: sqlx::Error,
}

impl<'a> Record<'a> {
    fn of(emit: &'a Emit, matches: Vec<Match>, now: Timestamp) -> Self {
        let mut record = Self { emit, now, matches, runs: Vec::new(), started: Vec::new() };
        if emit.event.dispatch == Dispatch::Now {
            record.runs = record.matches.iter().map(|matched| record.new_run(matched)).collect();
            if let Some(eager) = &emit.eager {
                record.start(eager);
            }
        }
        record
    }

    pub(crate) fn occurred_at(&self) -> Timestamp {
        self.emit.event.occurred_at.unwrap_or(self.now)
    }

    pub(crate) fn status(&self) -> &'static str {
        match (self.matches.is_empty(), self.emit.event.dispatch) {
            (true, Dispatch::Now | Dispatch::Deferred) => "unmatched",
            (false, Dispatch::Now) => "dispatched",
            (false, Dispatch::Deferred) => "pending",
        }
    }

    pub(crate) fn matched(&self) -> u32 {
        u32::try_from(self.matches.len()).unwrap_or(u32::MAX)
    }

    /// The emitter's word wins, even if no actor can be read from it.
    pub(crate) fn authorization<'m>(&'m self, matched: &'m Match) -> Option<&'m Value> {
        self.emit.event.authorization.as_ref().or(matched.authorization.as_ref())
    }

    fn new_run(&self, matched: &Match) -> Run {
        let (app, scope) = (&self.emit.app, &self.emit.scope);
        let from = (self.emit.id, self.occurred_at());
        new_run((app.as_str(), scope.as_str()), from, matched, self.now)
    }

    fn start(&mut self, eager: &Eager) {
        let slots = usize::try_from(eager.slots).unwrap_or(usize::MAX);
        let lease =
            Lease { owner: eager.session, until: self.now.plus(eager.lease), length: eager.lease };
        for (run, matched) in self.runs.iter_mut().zip(&self.matches) {
            if self.started.len() < slots
                && eager.footprints.contains(&run.origin.footprint)
                && let Ok(facts) =
                    decide_row(run, RowInput::Claim { lease: lease.clone() }, self.now)
            {
                *run = Commit::new(run, &facts).after;
                let activation = matched.authorization.as_ref();
                let invocation = Invocation::of_event(&self.emit.event, activation);
                self.started.push(Stored {
                    receipt: Receipt::attest(run),
                    run: run.clone(),
                    invocation: Some(invocation),
                    journal: Ok(Vec::new()),
                    now: self.now,
                });
            }
        }
    }

    fn emission(&mut self) -> Emission {
        let mut emission = Emission::of(self.emit.id);
        emission.matched = self.matched();
        emission.runs = self.runs.iter().map(|run| run.id).collect();
        emission.started = std::mem::take(&mut self.started);
        emission
    }
}

pub(crate) fn new_run(
    (app, scope): (&str, &str),
    (event, occurred_at): (EventId, Timestamp),
    matched: &Match,
    now: Timestamp,
) -> Run {
    let origin = Origin {
        app: app.into(),
        scope: scope.into(),
        workflow: matched.workflow.clone(),
        version: matched.version,
        footprint: matched.footprint.clone(),
        mode: Mode::Execute,
        event: Some(event),
        trigger: matched.trigger.clone(),
        occurred_at,
        root: matched.run,
        parent: None,
        created_at: now,
    };
    Run::new(matched.run, origin)
}

/// Records one event on the caller's transaction.
pub(crate) async fn emit(
    conn: &mut PgConnection,
    emit: &Emit,
    clock: &StoreClock,
) -> Result<Emission, EmitError> {
    for _ in 0..TRIES {
        let recorded = record(conn, &[emit], clock).await;
        let answers = recorded.map_err(|Failed { error, .. }| store_error(error))?;
        match answers.into_iter().next() {
            Some(Ok(Answer::Done(emission))) => return Ok(emission),
            Some(Ok(Answer::Deferred(mut emission))) => {
                let now = crate::store::now(conn, clock).await?;
                emission.runs = start_deferred(conn, emission.event, now).await?;
                return Ok(emission);
            }
            Some(Ok(Answer::BeingDeleted(place))) => return Err(EmitError::BeingDeleted { place }),
            Some(Err(fault)) => return Err(fault.into()),
            Some(Ok(Answer::Again)) | None => {}
        }
    }
    Err(moving().into())
}

/// What an event matches is deleted, again and again.
pub(crate) fn moving() -> StoreError {
    unavailable("what the event matches changes too fast: emit it again")
}

/// Records events, each for itself: one statement that is a transaction of its own, unless the caller has one.
///
/// # Errors
/// Of the driver, for all of them.
pub(crate) async fn record(
    conn: &mut PgConnection,
    emits: &[&Emit],
    clock: &StoreClock,
) -> Result<Vec<Result<Answer, Fault>>, Failed> {
    let before = |error| Failed { before: true, error };
    let (now, matches) = matching(conn, emits, clock).await.map_err(before)?;
    let mut answers = Vec::with_capacity(emits.len());
    let mut records = Vec::with_capacity(emits.len());
    for (emit, matches) in emits.iter().zip(matches) {
        answers.push(match matches {
            Ok(matches) => {
                records.push(Record::of(emit, matches, now));
                Ok(Answer::Again)
            }
            Err(fault) => Err(fault),
        });
    }
    let mut rows = Rows::default();
    for record in &records {
        let pushed = rows.push(record);
        pushed.map_err(|Fault(error)| before(sqlx::Error::Encode(Box::new(error))))?;
    }
    let written = rows.bind(sqlx::query(sql::EVENT_EMIT)).fetch_all(&mut *conn).await;
    let written = written.map_err(|error| Failed { before: false, error })?;
    let open = answers.iter_mut().filter(|answer| answer.is_ok());
    for ((known, record), row) in open.zip(&mut records).zip(&written) {
        *known = answer(conn, record, row).await;
    }
    Ok(answers)
}

async fn answer(
    conn: &mut PgConnection,
    record: &mut Record<'_>,
    row: &PgRow,
) -> Result<Answer, Fault> {
    if row.try_get("is_recorded")? {
        return Ok(Answer::Done(record.emission()));
    }
    let emit = record.emit;
    if let Some(workflow) = row.try_get::<Option<String>, _>("deleting")? {
        let place = place_of(emit.app.as_str(), emit.scope.as_str(), workflow);
        return Ok(Answer::BeingDeleted(place));
    }
    // In a statement of its own: the one before began when the original may not have been there yet.
    match original(conn, emit).await? {
        Some(original) => repeated(emit, &original),
        None => Ok(Answer::Again),
    }
}

/// The event that was recorded under this id, or this key, before.
async fn original(conn: &mut PgConnection, emit: &Emit) -> Result<Option<PgRow>, Fault> {
    let query = sqlx::query(sql::EVENT_ORIGINAL)
        .bind(emit.id.key())
        .bind(emit.app.as_str())
        .bind(emit.scope.as_str())
        .bind(&*emit.event.kind)
        .bind(emit.event.dedupe_key.as_deref());
    Ok(query.fetch_optional(conn).await?)
}

fn repeated(emit: &Emit, original: &PgRow) -> Result<Answer, Fault> {
    let mut emission = Emission::of(read_key(original, "id")?);
    emission.new = false;
    emission.matched = read_small(original, "matched")?;
    emission.same_payload =
        original.try_get::<&str, _>("payload_hash")? == emit.event.payload_hash();
    let runs: Vec<Uuid> = original.try_get("runs")?;
    emission.runs = runs.into_iter().map(RunId::of_key).collect();
    let status: &str = original.try_get("status")?;
    let is_pending = status == "pending" || status == "retrying";
    Ok(if is_pending && emit.event.dispatch == Dispatch::Now {
        Answer::Deferred(emission)
    } else {
        Answer::Done(emission)
    })
}

/// What an event would match, or why that cannot be read.
type Matches = Result<Vec<Match>, Fault>;

/// Enabled activations of live versions in the same app and scope, in a stable order, for each of the events; and the
/// store's time.
async fn matching(
    conn: &mut PgConnection,
    emits: &[&Emit],
    clock: &StoreClock,
) -> Result<(Timestamp, Vec<Matches>), sqlx::Error> {
    // A start is addressed to one workflow, never broadcast.
    let is_matched = |emit: &&&Emit| emit.event.kind != START_EVENT || emit.event.target.is_some();
    let kinds = emits.iter().map(|emit| Some(emit).filter(is_matched).map(|it| &*it.event.kind));
    let targets = emits.iter().map(|emit| emit.event.target.as_ref().map(WorkflowKey::as_str));
    let rows = sqlx::query(sql::EVENT_MATCH)
        .bind(emits.iter().map(|emit| emit.app.as_str()).collect::<Vec<_>>())
        .bind(emits.iter().map(|emit| emit.scope.as_str()).collect::<Vec<_>>())
        .bind(kinds.collect::<Vec<_>>())
        .bind(targets.collect::<Vec<_>>())
        .fetch_all(conn)
        .await?;
    let now = clock.at(rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get("now")?);
    let mut matches: Vec<Matches> = emits.iter().map(|_| Ok(Vec::new())).collect();
    for row in &rows {
        let Some(ord) = row.try_get::<Option<i64>, _>("ord")? else { continue };
        let index = usize::try_from(ord.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some((emit, matches)) = emits.get(index).zip(matches.get_mut(index)) else { continue };
        match (read_match(emit.id, row), &mut *matches) {
            (Ok(found), Ok(matches)) => matches.push(found),
            (Err(fault), Ok(_)) => *matches = Err(fault),
            (_, Err(_)) => {}
        }
    }
    Ok((now, matches))
}

fn read_match(event: EventId, row: &PgRow) -> Result<Match, Fault> {
    let workflow = WorkflowKey::from(row.try_get::<String, _>("workflow")?);
    let activation: &str = row.try_get("activation")?;
    Ok(Match {
        run: RunId::of_event(event, &workflow, activation),
        workflow,
        version: read_key(row, "version")?,
        footprint: row.try_get("footprint")?,
        trigger: row.try_get("trigger_kind")?,
        authorization: read_json(row, "authorization")?,
    })
}
