//! The lane of events: whatever waits to be recorded goes into one statement, on a connection of its own.
//!
//! It does not wait long for anybody. A dedupe key that an open transaction of the application has recorded, and not
//! committed, would keep every event behind it waiting: then the batch is sifted elsewhere, halved until that one is
//! alone, while the lane goes on; and that one waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use surefoot_kernel_core::{Emission, Emit, EmitError, StoreError};

use super::catalog::Catalog;
use super::dispatch::StartDeferred;
use super::emit::{Answer, Failed, moving, record};
use crate::clock::StoreClock;
use crate::error::{Fault, Kind, Said, Shared, kind, left_nothing, store_error};
use crate::options::PostgresOptions;
use crate::pool::{Pool, Use};
use crate::writer::{Turn, Writer};

/// How long the lane waits for a lock.
const LOCK_WAIT: Duration = Duration::from_millis(100);
/// How long the lane keeps its turn.
const TURN_MAX: Duration = Duration::from_millis(5);
/// How long a part of a batch waits that is sifted: as many times as it can be halved.
const SIFT_WAIT: Duration = Duration::from_millis(20);
/// Connections for batches that are sifted.
const SIFT_SEATS: usize = 2;
/// What one statement records at most.
const BATCH_EVENTS: usize = 500;
const BATCH_BYTES: usize = 8 << 20;
/// Connections for those that wait.
const SIDE_SEATS: usize = 4;
/// How often an event is recorded again that met something which is gone the next time.
const TRIES: u32 = 8;

type Reply = oneshot::Sender<Result<Emission, EmitError>>;

/// An event that waits, and who wants to know.
struct Ask {
    emit: Emit,
    tries: u32,
    reply: Reply,
}

impl Ask {
    fn bytes(&self) -> usize {
        let event = &self.emit.event;
        event.data.text().len().saturating_add(event.context.text().len())
    }

    /// Whoever asked may be gone: then nobody needs the answer.
    fn answer(self, answer: Result<Emission, EmitError>) {
        drop(self.reply.send(answer));
    }
}

/// The way to the lane. Its task ends once every handle is dropped and everything is answered.
#[derive(Debug, Clone)]
pub(crate) struct EmitLane {
    asks: mpsc::UnboundedSender<Ask>,
}

impl EmitLane {
    pub(crate) fn start(options: &PostgresOptions, writer: Writer) -> Self {
        let (asks, waiting) = mpsc::unbounded_channel();
        let impatient = options.clone().lock_wait(LOCK_WAIT);
        let lane = Lane {
            waiting,
            again: VecDeque::new(),
            pool: Pool::new(&impatient, Use::Kernel, 1),
            at_work: Arc::new(AtWork {
                clock: options.clock.clone(),
                catalog: Catalog::default(),
                sift: Pool::new(&options.clone().lock_wait(SIFT_WAIT), Use::Kernel, SIFT_SEATS),
                side: Pool::new(options, Use::Kernel, SIDE_SEATS),
                writer,
            }),
        };
        tokio::spawn(lane.run());
        Self { asks }
    }

    pub(crate) async fn emit(&self, emit: Emit) -> Result<Emission, EmitError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.asks.send(Ask { emit, tries: 0, reply });
        sent.map_err(|_| StoreError::Unavailable(Box::new(Said("the lane of events has ended"))))?;
        answer.await.unwrap_or_else(|_| {
            let said = Said("the lane of events ended while it had the event");
            Err(StoreError::UnknownOutcome(Box::new(said)).into())
        })
    }
}

/// The task behind the handle.
struct Lane {
    waiting: mpsc::UnboundedReceiver<Ask>,
    /// To be recorded again, before those that wait.
    again: VecDeque<Ask>,
    pool: Arc<Pool>,
    at_work: Arc<AtWork>,
}

/// What the lane shares with those that wait elsewhere.
struct AtWork {
    clock: StoreClock,
    catalog: Catalog,
    sift: Arc<Pool>,
    side: Arc<Pool>,
    writer: Writer,
}

impl Lane {
    async fn run(mut self) {
        while let Some(first) = self.next().await {
            let turn = self.at_work.writer.turns().next().await;
            let batch = self.gather(first);
            match self.in_turn(turn, batch).await {
                Done::Answered { again } => self.again.extend(again),
                Done::Halve(batch) => {
                    tokio::spawn(self.at_work.clone().sift(batch));
                }
                Done::Waits(ask) => {
                    tokio::spawn(self.at_work.clone().wait(*ask));
                }
            }
        }
    }

    /// A batch that waits for somebody's lock does not keep the committers waiting too.
    async fn in_turn(&self, turn: Option<Turn>, batch: Vec<Ask>) -> Done {
        let recording = self.at_work.record(&self.pool, batch);
        tokio::pin!(recording);
        tokio::select! {
            biased;
            done = &mut recording => return done,
            () = tokio::time::sleep(TURN_MAX) => drop(turn),
        }
        recording.await
    }

    async fn next(&mut self) -> Option<Ask> {
        match self.again.pop_front() {
            Some(ask) => Some(ask),
            None => self.waiting.recv().await,
        }
    }

    /// Everything that waits now, as far as it fits.
    fn gather(&mut self, first: Ask) -> Vec<Ask> {
        let mut bytes = first.bytes();
        let mut batch = vec![first];
        while batch.len() < BATCH_EVENTS && bytes < BATCH_BYTES {
            let next = self.again.pop_front().or_else(|| self.waiting.try_recv().ok());
            let Some(ask) = next else { break };
            bytes = bytes.saturating_add(ask.bytes());
            batch.push(ask);
        }
        batch
    }
}

/// How a statement for some events ended.
enum Done {
    /// Everybody has an answer, but for those that are to be recorded again.
    Answered { again: Vec<Ask> },
    /// One of them kept all from being recorded.
    Halve(Vec<Ask>),
    /// It needs a lock that somebody has.
    Waits(Box<Ask>),
}

impl AtWork {
    async fn record(&self, pool: &Arc<Pool>, asks: Vec<Ask>) -> Done {
        let mut conn = match pool.borrow().await {
            Ok(conn) => conn,
            Err(error) => return refuse_all(asks, error),
        };
        let emits: Vec<&Emit> = asks.iter().map(|ask| &ask.emit).collect();
        match record(&mut conn, &emits, &self.clock, &self.catalog).await {
            Ok(answers) => {
                // One whose last answer was lost is of no use.
                if answers.iter().all(Result::is_ok) {
                    conn.give_back();
                }
                let mut again = Vec::new();
                for (ask, answer) in asks.into_iter().zip(answers) {
                    again.extend(self.settle(ask, answer));
                }
                Done::Answered { again }
            }
            Err(failure) => {
                if left_nothing(&failure.error) {
                    conn.give_back();
                }
                failed(asks, failure)
            }
        }
    }

    /// Hands an answer over, or the event back if there is none yet.
    fn settle(&self, mut ask: Ask, answer: Result<Answer, Fault>) -> Option<Ask> {
        match answer {
            Ok(Answer::Done(emission)) => ask.answer(Ok(emission)),
            Ok(Answer::Deferred(mut emission)) => {
                let writer = self.writer.clone();
                tokio::spawn(async move {
                    let started = writer.ask(StartDeferred(emission.event)).await;
                    ask.answer(started.map_err(Into::into).map(|runs| {
                        emission.runs = runs;
                        emission
                    }));
                });
            }
            Ok(Answer::BeingDeleted(place)) => ask.answer(Err(EmitError::BeingDeleted { place })),
            Ok(Answer::Again) if ask.tries < TRIES => {
                ask.tries += 1;
                return Some(ask);
            }
            Ok(Answer::Again) => ask.answer(Err(moving().into())),
            Err(fault) => ask.answer(Err(fault.into())),
        }
        None
    }

    /// Records the events of a batch of which one keeps all from being recorded.
    async fn sift(self: Arc<Self>, batch: Vec<Ask>) {
        let mut parts = halves(batch);
        while let Some(part) = parts.pop() {
            match self.record(&self.sift, part).await {
                Done::Answered { again } if again.is_empty() => {}
                Done::Answered { again } => parts.push(again),
                Done::Halve(part) => parts.extend(halves(part)),
                Done::Waits(ask) => {
                    tokio::spawn(self.clone().wait(*ask));
                }
            }
        }
    }

    /// Records one event on a connection that waits longer.
    async fn wait(self: Arc<Self>, ask: Ask) {
        let mut next = Some(ask);
        while let Some(ask) = next.take() {
            match self.record(&self.side, vec![ask]).await {
                Done::Answered { again } => next = again.into_iter().next(),
                // It has waited as long as anybody may.
                Done::Waits(ask) => {
                    let said = Said("another transaction holds the dedupe key of the event");
                    ask.answer(Err(StoreError::Unavailable(Box::new(said)).into()));
                }
                // One cannot be halved.
                Done::Halve(asks) => next = asks.into_iter().next(),
            }
        }
    }
}

/// The first one is taken first.
fn halves(mut batch: Vec<Ask>) -> Vec<Vec<Ask>> {
    let second = batch.split_off(batch.len() / 2);
    vec![second, batch]
}

/// What an error of the statement means to those that were in it.
fn failed(mut asks: Vec<Ask>, Failed { before, error }: Failed) -> Done {
    if !before && !left_nothing(&error) {
        return leave_unknown(asks, error);
    }
    match kind(&error) {
        Kind::Refused | Kind::Locked if asks.len() > 1 => Done::Halve(asks),
        Kind::Locked => match asks.pop() {
            Some(ask) => Done::Waits(Box::new(ask)),
            None => Done::Answered { again: Vec::new() },
        },
        // The latter: a connection that was idle while the server was restarted; the next one is a new one.
        Kind::Conflict | Kind::Unavailable if asks.iter().all(|ask| ask.tries < TRIES) => {
            for ask in &mut asks {
                ask.tries += 1;
            }
            Done::Answered { again: asks }
        }
        Kind::Refused | Kind::Conflict | Kind::Aborted | Kind::Unavailable => {
            refuse_all(asks, store_error(error))
        }
    }
}

/// Nothing was recorded, and it is nobody's own fault.
fn refuse_all(mut asks: Vec<Ask>, error: StoreError) -> Done {
    if asks.len() == 1
        && let Some(ask) = asks.pop()
    {
        ask.answer(Err(error.into()));
        return Done::Answered { again: Vec::new() };
    }
    let told = Told(Arc::new(error));
    for ask in asks {
        ask.answer(Err(StoreError::Unavailable(Box::new(told.clone())).into()));
    }
    Done::Answered { again: Vec::new() }
}

/// Nobody knows whether they were recorded.
fn leave_unknown(asks: Vec<Ask>, error: sqlx::Error) -> Done {
    let shared = Shared(Arc::new(error));
    for ask in asks {
        ask.answer(Err(StoreError::UnknownOutcome(Box::new(shared.clone())).into()));
    }
    Done::Answered { again: Vec::new() }
}

/// An error of the store that several callers are told.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the events could not be recorded")]
struct Told(#[source] Arc<StoreError>);
