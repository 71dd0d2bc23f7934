//! Events: recorded once, matched when they are recorded.
//!
//! What events match is known, or read first. One statement then records them, with their runs or with what is to become
//! of them later; it says for itself which of them it recorded, which were there, or may not be, and at which time.

use std::sync::Arc;

use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::{
    Begun, Coming, Dispatch, Eager, Emission, Emit, EmitError, EventId, Invocation, JournalText,
    Mode, Origin, Place, Receipt, Run, RunId, StoreError, Stored, Timestamp,
};

use super::catalog::{Catalog, Found, Start};
use super::dispatch::start_deferred;
use super::rows::Rows;
use crate::clock::StoreClock;
use crate::error::{Fault, store_error, unavailable};
use crate::keys::Key;
use crate::plan::list::{read_json, read_key, read_small, read_time};
use crate::retention::place::place_of;
use crate::sql;

/// How often an event is matched again where the catalog changed before it was recorded.
const TRIES: usize = 4;

/// What an event matched: one run that it starts.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    pub(crate) run: RunId,
    pub(crate) found: Arc<Found>,
}

impl Match {
    fn of(event: EventId, found: &Arc<Found>) -> Self {
        let run = RunId::of_event(event, &found.start.workflow, &found.activation);
        Self { run, found: found.clone() }
    }
}

/// An event as it is about to be recorded.
pub(crate) struct Record<'a> {
    pub(crate) emit: &'a Emit,
    pub(crate) matches: Vec<Match>,
    /// One per match, if they are created at once. Their times count from when they are recorded.
    pub(crate) runs: Vec<New>,
}

/// A run that an event starts.
pub(crate) enum New {
    Queued(Box<Run>),
    /// By a local worker: running from the first moment on.
    Started(Box<Begun>, Invocation),
}

impl New {
    pub(crate) fn run(&self) -> &Run {
        match self {
            Self::Queued(run) => run,
            Self::Started(begun, _) => &begun.commit.after,
        }
    }

    fn stored(self, now: Timestamp) -> Option<Stored> {
        match self {
            Self::Queued(_) => None,
            Self::Started(begun, with) => {
                let receipt = Receipt::attest(&begun.commit.after);
                Some(begun.stored(receipt, (Some(with), Vec::new()), now))
            }
        }
    }

    pub(crate) fn journal(&self) -> Option<&JournalText> {
        match self {
            Self::Queued(_) => None,
            Self::Started(begun, _) => begun.commit.journal.as_ref(),
        }
    }
}

/// The time from which those of runs count that are not recorded yet.
const BEFORE: Timestamp = Timestamp::from_micros(0);

/// What became of an event.
#[derive(Debug)]
pub(crate) enum Answer {
    Done(Emission),
    /// It is there, deferred, and this call wants its runs now.
    Deferred(Emission),
    BeingDeleted(Place),
    /// What it matched may have changed before it was recorded: it is to be matched again.
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
    fn of(emit: &'a Emit, found: &[Arc<Found>]) -> Self {
        let matches: Vec<Match> = found.iter().map(|found| Match::of(emit.id, found)).collect();
        let mut record = Self { emit, matches, runs: Vec::new() };
        if emit.event.dispatch == Dispatch::Now {
            record.runs = record.new_runs(BEFORE);
        }
        record
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
        self.emit.event.authorization.as_ref().or(matched.found.start.authorization.as_ref())
    }

    /// The runs as they are at that time.
    fn new_runs(&self, now: Timestamp) -> Vec<New> {
        let emit = self.emit;
        let occurred_at = emit.event.occurred_at.unwrap_or(now);
        let mut slots = emit.eager.as_ref().map_or(0, |eager| eager.slots);
        let start = |matched: &Match| {
            let place = (emit.app.as_str(), emit.scope.as_str());
            let run = (matched.run, &matched.found.start);
            let run = new_run(place, (emit.id, occurred_at), run, now);
            let eager = emit.eager.as_ref().filter(|_| slots > 0);
            match eager.and_then(|eager| self.started((&run, matched), eager, now)) {
                Some(started) => {
                    slots -= 1;
                    started
                }
                None => New::Queued(Box::new(run)),
            }
        };
        self.matches.iter().map(start).collect()
    }

    /// The run as a local worker has it, if it can run it.
    fn started(&self, (run, of): (&Run, &Match), eager: &Eager, now: Timestamp) -> Option<New> {
        if !eager.footprints.contains(&run.origin.footprint) {
            return None;
        }
        let (event, activation) = (&self.emit.event, of.found.start.authorization.as_ref());
        let invocation = Invocation::of_event(event, activation);
        let is_dated = event.occurred_at.is_some();
        let coming = Coming { run, invocation: Some(&invocation), is_dated };
        let begun = eager.plans.begin(coming, eager.lease(now), now).ok()?;
        Some(New::Started(Box::new(begun), invocation))
    }

    fn emission(&self, now: Timestamp) -> Emission {
        let mut emission = Emission::of(self.emit.id);
        emission.matched = self.matched();
        emission.runs = self.runs.iter().map(|new| new.run().id).collect();
        if self.emit.eager.is_some() && !self.runs.is_empty() {
            emission.started =
                self.new_runs(now).into_iter().filter_map(|new| new.stored(now)).collect();
        }
        emission
    }
}

pub(crate) fn new_run(
    (app, scope): (&str, &str),
    (event, occurred_at): (EventId, Timestamp),
    (run, start): (RunId, &Start),
    now: Timestamp,
) -> Run {
    let origin = Origin {
        app: app.into(),
        scope: scope.into(),
        workflow: start.workflow.clone(),
        version: start.version,
        footprint: start.footprint.clone(),
        mode: Mode::Execute,
        event: Some(event),
        trigger: start.trigger.clone(),
        occurred_at,
        root: run,
        parent: None,
        created_at: now,
    };
    Run::new(run, origin)
}

/// Records one event on the caller's transaction.
pub(crate) async fn emit(
    conn: &mut PgConnection,
    emit: &Emit,
    clock: &StoreClock,
) -> Result<Emission, EmitError> {
    // What the transaction sees is not what others see: nothing is kept of it.
    let catalog = Catalog::default();
    for _ in 0..TRIES {
        let recorded = record(conn, &[emit], clock, &catalog).await;
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

/// What an event matches changes, again and again.
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
    catalog: &Catalog,
) -> Result<Vec<Result<Answer, Fault>>, Failed> {
    let before = |error| Failed { before: true, error };
    let (name, matches) = catalog.matches(conn, emits).await.map_err(before)?;
    let mut answers = Vec::with_capacity(emits.len());
    let mut records = Vec::with_capacity(emits.len());
    for (emit, matches) in emits.iter().zip(matches) {
        answers.push(matches.map(|found| {
            records.push(Record::of(emit, &found));
            Answer::Again
        }));
    }
    let mut rows = Rows::default();
    for record in &records {
        let pushed = rows.push(record);
        pushed.map_err(|Fault(error)| before(sqlx::Error::Encode(Box::new(error))))?;
    }
    let query = sqlx::query(sql::EVENT_EMIT).bind(clock.offset()).bind(name);
    let query = query.bind(rows.events).bind(rows.deliveries).bind(rows.rows).bind(rows.runs);
    let query = query.bind(rows.facts);
    let written = query.fetch_all(&mut *conn).await;
    let written = written.map_err(|error| Failed { before: false, error })?;
    let open = answers.iter_mut().filter(|answer| answer.is_ok());
    for ((known, record), row) in open.zip(&records).zip(&written) {
        *known = answer(conn, record, row, catalog).await;
    }
    Ok(answers)
}

async fn answer(
    conn: &mut PgConnection,
    record: &Record<'_>,
    row: &PgRow,
    catalog: &Catalog,
) -> Result<Answer, Fault> {
    if row.try_get("is_recorded")? {
        return Ok(Answer::Done(record.emission(read_time(row, "now")?)));
    }
    let emit = record.emit;
    if let Some(workflow) = row.try_get::<Option<String>, _>("deleting")? {
        let place = place_of(emit.app.as_str(), emit.scope.as_str(), workflow);
        return Ok(Answer::BeingDeleted(place));
    }
    if row.try_get::<Option<bool>, _>("is_current")? != Some(true) {
        catalog.forget();
        return Ok(Answer::Again);
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
    let tags: Vec<String> = read_json(original, "tags")?.unwrap_or_default();
    emission.same_tags = tags == emit.event.tags;
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
