//! New events: matched when they are recorded, many in a few statements.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{
    Begun, Coming, Dispatch, Eager, Emission, Emit, EmitError, Invocation, Receipt, Run, RunId,
    START_EVENT, Stored, Timestamp, VersionId, WorkflowKey,
};

use super::emit::{Match, Recorded, emit, new_run, packed, read_json, sixteen, started_with};
use crate::error::Fault;
use crate::run::insert::{StartedWith, insert_all};
use crate::run::row::json_opt;
use crate::sql::{self, pieces};

/// Events, at most as many as a statement has rows, each with an answer of its own: an error of the database costs all
/// of them, a verdict only one. The caller holds a write transaction.
pub(crate) async fn emit_all(
    conn: &mut SqliteConnection,
    emits: &[&Emit],
    now: Timestamp,
) -> Result<Vec<Result<Emission, EmitError>>, Fault> {
    if are_new(conn, emits).await? {
        return Ok(record(conn, emits, now).await?.into_iter().map(Ok).collect());
    }
    let mut answers = Vec::with_capacity(emits.len());
    for one in emits {
        answers.push(match emit(conn, one, now).await {
            Err(EmitError::Store(error)) => return Err(Fault(error)),
            answer => answer,
        });
    }
    Ok(answers)
}

/// Whether nobody has recorded any of them, and nothing is being deleted where they belong.
async fn are_new(conn: &mut SqliteConnection, emits: &[&Emit]) -> Result<bool, Fault> {
    let mut query = sqlx::query(sql::EVENT_NEW.text(emits.len()));
    let (mut ids, mut keys) = (HashSet::new(), HashSet::new());
    for emit in emits {
        let key = emit.event.dedupe_key.as_deref();
        let (app, scope, kind) = (emit.app.as_str(), emit.scope.as_str(), &*emit.event.kind);
        if !ids.insert(emit.id) || key.is_some_and(|key| !keys.insert((app, scope, kind, key))) {
            return Ok(false);
        }
        query = query
            .bind(emit.id.to_bytes().to_vec())
            .bind(app)
            .bind(scope)
            .bind(kind)
            .bind(key)
            .bind(emit.event.target.as_ref().map_or("", WorkflowKey::as_str));
    }
    query = sql::EVENT_NEW.blank(query, emits.len());
    let new: i64 = query.fetch_one(conn).await?.try_get("new")?;
    Ok(usize::try_from(new).is_ok_and(|new| new == emits.len()))
}

/// An event that is about to be recorded.
struct New<'a> {
    emit: &'a Emit,
    matches: Vec<Match>,
    occurred_at: Timestamp,
}

impl New<'_> {
    /// Whether its runs are created with it.
    fn starts(&self) -> bool {
        self.emit.event.dispatch == Dispatch::Now && !self.matches.is_empty()
    }

    const fn status(&self) -> &'static str {
        match (self.matches.is_empty(), self.emit.event.dispatch) {
            (true, _) => "unmatched",
            (false, Dispatch::Now) => "dispatched",
            (false, Dispatch::Deferred) => "pending",
        }
    }

    fn runs(&self) -> Vec<RunId> {
        let matches = self.matches.iter().filter(|_| self.starts());
        matches.map(|matched| matched.run).collect()
    }

    fn matched(&self) -> u32 {
        u32::try_from(self.matches.len()).unwrap_or(u32::MAX)
    }

    fn recorded(&self) -> Recorded<'_> {
        let event = &self.emit.event;
        Recorded {
            event: self.emit.id,
            app: self.emit.app.as_str(),
            scope: self.emit.scope.as_str(),
            occurred_at: self.occurred_at,
            data: event.data.text(),
            context: event.context.text(),
            authorization: event.authorization.as_ref(),
            trace: event.trace.as_ref(),
        }
    }
}

/// Records events that nobody has recorded, with what they matched. The caller holds a write transaction.
pub(super) async fn record(
    conn: &mut SqliteConnection,
    emits: &[&Emit],
    now: Timestamp,
) -> Result<Vec<Emission>, Fault> {
    let mut listeners = Listeners::default();
    let mut events = Vec::with_capacity(emits.len());
    for emit in emits {
        let matches = listeners.matching(conn, emit).await?;
        let occurred_at = emit.event.occurred_at.unwrap_or(now);
        events.push(New { emit, matches, occurred_at });
    }
    for piece in pieces(&events) {
        insert_events(conn, piece, now).await?;
    }
    let mut runs = Vec::with_capacity(events.len());
    for event in &events {
        if event.starts() {
            runs.push(begin(event, now));
        } else {
            write_deliveries(conn, event).await?;
            runs.push(Vec::new());
        }
    }
    let rows = events.iter().zip(&runs);
    let rows: Vec<(&Run, StartedWith<'_>)> =
        rows.flat_map(|(event, runs)| runs.iter().map(|run| run.row(event))).collect();
    insert_all(conn, &rows).await?;
    drop(rows);
    let emission = |(event, runs): (&New<'_>, Vec<NewRun<'_>>)| {
        let mut emission = Emission::of(event.emit.id);
        emission.matched = event.matched();
        emission.runs = event.runs();
        emission.started = runs.into_iter().filter_map(|run| run.stored(now)).collect();
        emission
    };
    Ok(events.iter().zip(runs).map(emission).collect())
}

async fn insert_events(
    conn: &mut SqliteConnection,
    events: &[New<'_>],
    now: Timestamp,
) -> Result<(), Fault> {
    let mut query = sqlx::query(sql::EVENT_RECORD.text(events.len()));
    for new in events {
        let (emit, event, status) = (new.emit, &new.emit.event, new.status());
        query = query
            .bind(emit.id.to_bytes().to_vec())
            .bind(emit.app.as_str())
            .bind(emit.scope.as_str())
            .bind(&*event.kind)
            .bind(event.dedupe_key.as_deref())
            .bind(event.target.as_ref().map(WorkflowKey::as_str))
            .bind(event.payload_hash())
            .bind(new.occurred_at.micros())
            .bind(now.micros())
            .bind(new.matched())
            .bind(packed(&new.runs()))
            .bind(status)
            .bind((status == "pending").then_some(now.micros()))
            .bind((status == "dispatched").then_some(now.micros()))
            .bind(json_opt((!event.tags.is_empty()).then_some(&event.tags))?)
            .bind(0);
    }
    query = sql::EVENT_INSERT.blank(query, events.len());
    for New { emit, .. } in events {
        let event = &emit.event;
        query = query
            .bind(emit.id.to_bytes().to_vec())
            .bind(event.data.text())
            .bind(event.context.text())
            .bind(json_opt(event.authorization.as_ref())?)
            .bind(json_opt(event.trace.as_ref())?);
    }
    query = sql::EVENT_PAYLOAD_WRITE.blank(query, events.len());
    query.execute(conn).await?;
    Ok(())
}

/// A run of an event as it is recorded.
enum NewRun<'e> {
    Queued(Box<Run>, &'e Match),
    /// By a local worker: running from the first moment on.
    Started(Box<Begun>, &'e Match, Invocation),
}

impl<'e> NewRun<'e> {
    fn row(&'e self, event: &'e New<'_>) -> (&'e Run, StartedWith<'e>) {
        match self {
            Self::Queued(run, matched) => (run, started_with(event.recorded(), matched)),
            Self::Started(begun, matched, _) => {
                let with = started_with(event.recorded(), matched);
                let journal = begun.commit.journal.as_ref();
                (&begun.commit.after, StartedWith { journal, ..with })
            }
        }
    }

    fn stored(self, now: Timestamp) -> Option<Stored> {
        match self {
            Self::Queued(..) => None,
            Self::Started(begun, _, with) => {
                let receipt = Receipt::attest(&begun.commit.after);
                Some(begun.stored(receipt, (Some(with), Vec::new()), now))
            }
        }
    }
}

/// The runs of an event; those that a local worker has slots for are running from the first moment on.
fn begin<'e>(event: &'e New<'_>, now: Timestamp) -> Vec<NewRun<'e>> {
    let mut slots = event.emit.eager.as_ref().map_or(0, |eager| eager.slots);
    let start = |matched: &'e Match| {
        let run = new_run(event.recorded(), matched, now);
        let eager = event.emit.eager.as_ref().filter(|_| slots > 0);
        match eager.and_then(|eager| started(&run, event, matched, (eager, now))) {
            Some((begun, with)) => {
                slots -= 1;
                NewRun::Started(Box::new(begun), matched, with)
            }
            None => NewRun::Queued(Box::new(run), matched),
        }
    };
    event.matches.iter().map(start).collect()
}

/// The run as a local worker has it, if it can run it.
fn started(
    run: &Run,
    event: &New<'_>,
    matched: &Match,
    (eager, now): (&Eager, Timestamp),
) -> Option<(Begun, Invocation)> {
    if !eager.footprints.contains(&matched.footprint) {
        return None;
    }
    let invocation = Invocation::of_event(&event.emit.event, matched.authorization.as_ref());
    let coming = Coming::of(run, Some(&invocation));
    let begun = eager.plans.begin(coming, eager.lease(now), now).ok()?;
    Some((begun, invocation))
}

/// What a deferred event matched, until its runs exist.
async fn write_deliveries(conn: &mut SqliteConnection, event: &New<'_>) -> Result<(), Fault> {
    for (position, matched) in (0_i64..).zip(&event.matches) {
        sqlx::query(sql::EVENT_DELIVERY_WRITE)
            .bind(event.emit.id.to_bytes().to_vec())
            .bind(position)
            .bind(matched.run.to_bytes().to_vec())
            .bind(matched.workflow.as_str())
            .bind(matched.version.to_bytes().to_vec())
            .bind(&*matched.footprint)
            .bind(matched.trigger.as_deref())
            .bind(json_opt(matched.authorization.as_ref())?)
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}

/// What listens to the events of one transaction: the catalog does not change while it lasts.
#[derive(Default)]
struct Listeners<'a> {
    known: HashMap<Heard<'a>, Vec<Listener>>,
}

/// App, scope, kind and target of an event.
type Heard<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

struct Listener {
    activation: String,
    /// Of no event yet.
    matched: Match,
}

impl<'a> Listeners<'a> {
    /// Enabled activations of live versions in the same app and scope, in a stable order.
    async fn matching(
        &mut self,
        conn: &mut SqliteConnection,
        emit: &'a Emit,
    ) -> Result<Vec<Match>, Fault> {
        let target = emit.event.target.as_ref().map(WorkflowKey::as_str);
        // A start is addressed to one workflow, never broadcast.
        if emit.event.kind == START_EVENT && target.is_none() {
            return Ok(Vec::new());
        }
        let heard = (emit.app.as_str(), emit.scope.as_str(), &*emit.event.kind, target);
        let known = match self.known.entry(heard) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(listeners(conn, heard).await?),
        };
        let of_event = |listener: &Listener| {
            let matched = &listener.matched;
            let run = RunId::of_event(emit.id, &matched.workflow, &listener.activation);
            Match { run, ..matched.clone() }
        };
        Ok(known.iter().map(of_event).collect())
    }
}

async fn listeners(
    conn: &mut SqliteConnection,
    (app, scope, kind, target): Heard<'_>,
) -> Result<Vec<Listener>, Fault> {
    let query = sqlx::query(sql::EVENT_MATCH).bind(app).bind(scope).bind(kind).bind(target);
    let rows = query.fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            let matched = Match {
                run: RunId::from_bytes([0; 16]),
                workflow: WorkflowKey::from(row.try_get::<String, _>("workflow")?),
                version: VersionId::from_bytes(sixteen(row, "version")?),
                footprint: row.try_get("footprint")?,
                trigger: row.try_get("trigger_kind")?,
                authorization: read_json(row, "authorization")?,
            };
            Ok(Listener { activation: row.try_get("activation")?, matched })
        })
        .collect()
}
