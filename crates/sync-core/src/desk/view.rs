//! What is shown, with stable names of fields.

use serde::{Serialize, Serializer};
use serde_json::Value;
use surefoot_kernel_core::Timestamp;

use crate::{
    Begun, DeadLetter, Depth, Misfire, Occasion, Outcome, Pause, Resource, ResourceId,
    ScheduleRecord, SyncError,
};

/// RFC 3339, UTC, microseconds.
struct Text(Timestamp);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

fn text<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    Text(*at).serialize(serializer)
}

fn some_text<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(Text).serialize(serializer)
}

fn texts<S: Serializer>(all: &[Timestamp], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(|at| Text(*at)))
}

/// How much there is of one kind of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueView {
    /// `jobs:thumbnails`.
    pub resource: String,
    /// Waits for a worker, or for its time.
    pub waiting: u64,
    /// Held by a worker.
    pub held: u64,
    /// Dead letters.
    pub dead: u64,
    /// What all takes up.
    pub bytes: u64,
    /// Since when the oldest is there, by the server's clock.
    #[serde(serialize_with = "some_text")]
    pub oldest: Option<Timestamp>,
    /// How long that is.
    pub oldest_age_ms: Option<i64>,
    /// Whether nothing is handed out.
    pub paused: bool,
}

impl QueueView {
    pub(super) fn new(resource: &Resource, depth: &Depth) -> Self {
        let age = |oldest| depth.now.since(oldest).get() / 1_000;
        Self {
            resource: resource.to_string(),
            waiting: depth.waiting,
            held: depth.held,
            dead: depth.dead,
            bytes: depth.bytes,
            oldest: depth.oldest,
            oldest_age_ms: depth.oldest.map(age),
            paused: depth.paused,
        }
    }
}

/// Work that was given up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeadView {
    /// `queue:orders`.
    pub resource: String,
    /// Of which work.
    pub id: String,
    /// What the sender named it by.
    pub key: Option<String>,
    /// How many attempts were made.
    pub attempts: u32,
    /// Why it was given up.
    pub reason: String,
    /// Since when.
    #[serde(serialize_with = "text")]
    pub since: Timestamp,
    /// What was sent.
    pub data: Value,
}

impl DeadView {
    pub(super) fn new(resource: &Resource, letter: DeadLetter) -> Self {
        let DeadLetter { id, key, data, attempts, reason, since, place: _ } = letter;
        let (id, key) = (id.as_str().to_owned(), key.map(String::from));
        Self { resource: resource.to_string(), id, key, attempts, reason, since, data }
    }
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScheduleView {
    /// In which set.
    pub set: String,
    /// Which one.
    pub id: String,
    /// Five fields.
    pub cron: String,
    /// The zone of its times.
    pub timezone: String,
    /// What is done about slots that passed unnoticed.
    pub misfire: Misfire,
    /// What created it, if that was no person.
    pub owner: Option<String>,
    /// While it is paused: since when, by whom, why.
    pub paused: Option<PausedView>,
    /// The next times, whether it is paused or not.
    #[serde(serialize_with = "texts")]
    pub next: Vec<Timestamp>,
    /// How many runs began.
    pub runs: u64,
    /// The run that is under way.
    pub current: Option<RunView>,
    /// How the last one ended.
    pub last: Option<String>,
}

/// Why no slots are run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PausedView {
    /// Since when.
    #[serde(serialize_with = "text")]
    pub since: Timestamp,
    /// Who paused it.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl From<Pause> for PausedView {
    fn from(Pause { since, by, reason }: Pause) -> Self {
        Self { since, by, reason }
    }
}

impl From<Begun> for RunView {
    fn from(run: Begun) -> Self {
        let (occasion, of) = match run.occasion {
            Occasion::Slot(slot) => ("slot", slot.to_string()),
            Occasion::Asked(request) => ("asked", request.into()),
            Occasion::Backfill(slot) => ("backfill", slot.to_string()),
        };
        Self { number: run.number, occasion, of, attempt: run.attempt }
    }
}

/// A run that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunView {
    /// Counts the runs of the schedule.
    pub number: u64,
    /// Why it runs: `slot`, `asked` or `backfill`.
    pub occasion: &'static str,
    /// Which slot, or which request.
    pub of: String,
    /// The first is 1.
    pub attempt: u32,
}

impl ScheduleView {
    pub(super) fn new(
        set: &ResourceId,
        record: ScheduleRecord,
        now: Timestamp,
        next: usize,
    ) -> Result<Self, SyncError> {
        let next = record.next_slots(now, next)?;
        let last = record.last_outcome().map(|outcome| match outcome {
            Outcome::Succeeded => "succeeded".to_owned(),
            Outcome::Failed(why) => format!("failed: {why}"),
        });
        let ScheduleRecord { spec, runs, current, paused, .. } = record;
        Ok(Self {
            set: set.as_str().to_owned(),
            id: spec.id.into(),
            cron: spec.cron,
            timezone: spec.timezone.unwrap_or_else(|| "UTC".to_owned()),
            misfire: spec.misfire,
            owner: spec.owner,
            paused: paused.map(PausedView::from),
            next,
            runs,
            current: current.map(RunView::from),
            last,
        })
    }
}

/// What somebody did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteView {
    /// When, by the server's clock.
    #[serde(serialize_with = "text")]
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What.
    pub verb: String,
    /// To which resource.
    pub resource: String,
    /// To which part of it.
    pub subject: Option<String>,
    /// Why.
    pub reason: String,
}

/// What a change came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// `false`: there was nothing to do.
    pub changed: bool,
    /// In words.
    pub message: String,
}

impl Changed {
    pub(super) fn done(message: impl Into<String>) -> Self {
        Self { changed: true, message: message.into() }
    }

    pub(super) fn unchanged(message: impl Into<String>) -> Self {
        Self { changed: false, message: message.into() }
    }

    pub(super) fn of(changed: bool, done: String, not: &str) -> Self {
        if changed { Self::done(done) } else { Self::unchanged(not) }
    }
}
