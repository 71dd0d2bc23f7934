//! The writer: the one task of a process that writes for the kernel, through the one connection that never waits
//! inside SQLite.
//!
//! Whatever waits when it gets the write lock is written in one transaction, renewals first; nobody waits for a
//! batch to fill. Each entry has its own answer. An entry that breaks a rule of the schema costs the batch a second
//! run, in which each entry has a savepoint and the culprit fails alone.

mod job;
pub(crate) mod lock;
mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteTransactionManager};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use sqlx_core::transaction::TransactionManager;
use tokio::sync::{mpsc, oneshot};

use surefoot_kernel_core::{Commit, Committed, Emission, Emit, EmitError, StoreError};

use self::job::{Ask, Fate, Job, Step, Waiting};
use self::lock::{Pause, Turn, begin_immediate};
use self::queue::{Entry, Queue, Taken};
use crate::clock::StoreClock;
use crate::error::{Said, Shared, is_busy, unavailable};
use crate::file::OpenFile;
use crate::options::SqliteOptions;
use crate::pool::{CONNECT_BUSY, never_wait};

pub(crate) use self::job::{Cx, Lane, Op};

/// No entry is begun in a transaction that has lasted for so long: others wait for the lock too.
const HOLD_MAX: Duration = Duration::from_millis(10);
/// After holding the lock for so long in all, the writer lets others go first.
const REST_AFTER: Duration = Duration::from_millis(20);
const REST: Duration = Duration::from_millis(1);

pub(crate) enum Request {
    Commit(Box<Waiting<Commit>>),
    Emit(Box<Waiting<Emit>>),
    Job(Lane, Box<dyn Job>),
}

/// What the writer has done so far.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) transactions: AtomicU64,
    /// The longest time that it held the write lock.
    pub(crate) hold_us_max: AtomicU64,
}

/// The way to the writer.
#[derive(Debug, Clone)]
pub(crate) struct WriterHandle {
    requests: mpsc::UnboundedSender<Request>,
    file: Arc<OpenFile>,
    stats: Arc<Stats>,
}

impl WriterHandle {
    /// Has an operation run in the writer's next transaction.
    pub(crate) async fn ask<O: Op>(&self, op: O) -> Result<O::Out, O::Err> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Job(O::LANE, Box::new(Ask::new(op, reply))))?;
        answer.await.unwrap_or_else(|_| Err(gone().into()))
    }

    pub(crate) async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Commit(Box::new(Waiting::new(commit, reply))))?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(crate) async fn emit(&self, emit: Emit) -> Result<Emission, EmitError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Emit(Box::new(Waiting::new(emit, reply))))?;
        answer.await.unwrap_or_else(|_| Err(gone().into()))
    }

    pub(crate) fn stats(&self) -> &Stats {
        &self.stats
    }

    fn send(&self, request: Request) -> Result<(), StoreError> {
        self.file.check()?;
        self.requests.send(request).map_err(|_| unavailable("the store's writer has ended"))
    }
}

/// The writer ended, with its runtime, while it had the request.
fn gone() -> StoreError {
    StoreError::UnknownOutcome(Box::new(Said("the store's writer ended during the write")))
}

/// The task behind the handle.
pub(crate) struct Writer {
    requests: mpsc::UnboundedReceiver<Request>,
    queue: Queue,
    turn: Turn,
    clock: StoreClock,
    connect: SqliteConnectOptions,
    conn: Option<SqliteConnection>,
    lock_wait: Duration,
    pause: Pause,
    held: Duration,
    stats: Arc<Stats>,
}

impl Writer {
    pub(crate) fn start(options: &SqliteOptions, file: Arc<OpenFile>, turn: Turn) -> WriterHandle {
        let (sender, requests) = mpsc::unbounded_channel();
        let writer = Self {
            requests,
            queue: Queue::default(),
            turn,
            clock: options.clock.clone(),
            connect: options.connect(CONNECT_BUSY),
            conn: None,
            lock_wait: options.lock_wait,
            pause: Pause::new(options.clock.now()),
            held: Duration::ZERO,
            stats: Arc::default(),
        };
        let stats = writer.stats.clone();
        tokio::spawn(writer.run());
        WriterHandle { requests: sender, file, stats }
    }

    /// Ends once every handle is dropped and everything is answered.
    async fn run(mut self) {
        while self.wait_for_work().await {
            let turn = self.turn.take().await;
            let Some(mut conn) = self.begin().await else { continue };
            let began = Instant::now();
            self.drain();
            if self.batch(&mut conn, began).await {
                self.conn = Some(conn);
            }
            drop(turn);
            self.note(began.elapsed());
            if self.held >= REST_AFTER {
                self.held = Duration::ZERO;
                tokio::time::sleep(REST).await;
            }
        }
        if let Some(conn) = self.conn {
            // The last connection of a file tidies up after it; if that fails, the next to open it does.
            drop(conn.close().await);
        }
    }

    fn note(&mut self, hold: Duration) {
        self.held += hold;
        let hold_us = u64::try_from(hold.as_micros()).unwrap_or(u64::MAX);
        self.stats.hold_us_max.fetch_max(hold_us, Ordering::Relaxed);
        self.stats.transactions.fetch_add(1, Ordering::Relaxed);
    }

    async fn wait_for_work(&mut self) -> bool {
        if self.queue.is_empty() {
            let Some(request) = self.requests.recv().await else { return false };
            self.queue.push(request);
        }
        true
    }

    fn drain(&mut self) {
        while let Ok(request) = self.requests.try_recv() {
            self.queue.push(request);
        }
    }

    /// A connection inside a write transaction; goes on trying while somebody waits who has not waited for too long.
    async fn begin(&mut self) -> Option<SqliteConnection> {
        self.pause.reset();
        loop {
            match self.try_begin().await {
                Ok(conn) => return Some(conn),
                Err(error) => {
                    if !is_busy(&error) {
                        tracing::debug!(%error, "the store's writer cannot begin a transaction");
                    }
                    tokio::time::sleep(self.pause.next()).await;
                }
            }
            self.drain();
            self.queue.expire(self.lock_wait);
            if self.queue.is_empty() {
                return None;
            }
        }
    }

    async fn try_begin(&mut self) -> Result<SqliteConnection, sqlx::Error> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => {
                let mut conn = self.connect.connect().await?;
                never_wait(&mut conn).await?;
                conn
            }
        };
        match begin_immediate(&mut conn).await {
            Ok(()) => Ok(conn),
            Err(error) => {
                if is_busy(&error) {
                    self.conn = Some(conn);
                }
                Err(error)
            }
        }
    }

    /// Writes what waits. Answers whether the connection is clean.
    async fn batch(&mut self, conn: &mut SqliteConnection, began: Instant) -> bool {
        let cx = self.cx(began);
        let mut taken = Taken::default();
        let mut entries = Vec::new();
        while began.elapsed() < HOLD_MAX || entries.is_empty() {
            let Some(mut entry) = self.queue.next(&mut taken) else { break };
            let step = entry.run(conn, cx).await;
            entries.push(entry);
            match step {
                Step::Done => {}
                Step::Refused => return self.one_by_one(conn, entries).await,
                Step::Broken => return roll_back(conn, entries).await,
            }
        }
        commit(conn, entries).await
    }

    /// The same entries again, each in a savepoint of its own: whoever is refused is refused alone.
    async fn one_by_one(&mut self, conn: &mut SqliteConnection, entries: Vec<Entry>) -> bool {
        if SqliteTransactionManager::rollback(conn).await.is_err() || !self.begin_again(conn).await
        {
            entries.into_iter().for_each(|entry| entry.settle(Fate::RolledBack));
            return false;
        }
        let cx = self.cx(Instant::now());
        let mut done = Vec::new();
        let mut rest = entries.into_iter().flat_map(Entry::split);
        while let Some(mut entry) = rest.next() {
            let is_fine = run_alone(conn, &mut entry, cx).await;
            done.push(entry);
            if !is_fine {
                done.extend(rest);
                return roll_back(conn, done).await;
            }
        }
        commit(conn, done).await
    }

    async fn begin_again(&mut self, conn: &mut SqliteConnection) -> bool {
        self.pause.reset();
        let since = Instant::now();
        loop {
            match begin_immediate(conn).await {
                Ok(()) => return true,
                Err(error) if is_busy(&error) && since.elapsed() < self.lock_wait => {
                    tokio::time::sleep(self.pause.next()).await;
                }
                Err(_) => return false,
            }
        }
    }

    fn cx(&self, began: Instant) -> Cx {
        Cx { now: self.clock.now(), pause_at: began + HOLD_MAX }
    }
}

/// Runs an entry that can be undone without the others. Answers whether the transaction is of use.
async fn run_alone(conn: &mut SqliteConnection, entry: &mut Entry, cx: Cx) -> bool {
    if sqlx::query("SAVEPOINT entry").execute(&mut *conn).await.is_err() {
        return false;
    }
    let undone = match entry.run(conn, cx).await {
        Step::Done => Ok(()),
        Step::Refused => sqlx::query("ROLLBACK TO entry").execute(&mut *conn).await.map(drop),
        Step::Broken => return false,
    };
    undone.is_ok() && sqlx::query("RELEASE entry").execute(conn).await.is_ok()
}

/// Answers whether the connection is clean.
async fn roll_back(conn: &mut SqliteConnection, entries: Vec<Entry>) -> bool {
    let clean = SqliteTransactionManager::rollback(conn).await.is_ok();
    entries.into_iter().for_each(|entry| entry.settle(Fate::RolledBack));
    clean
}

/// Answers whether the connection is clean.
async fn commit(conn: &mut SqliteConnection, entries: Vec<Entry>) -> bool {
    let (fate, clean) = match SqliteTransactionManager::commit(conn).await {
        Ok(()) => (Fate::Committed, true),
        Err(error) => {
            tracing::debug!(%error, "the outcome of a commit is unknown");
            (Fate::Unknown(Shared(Arc::new(error))), false)
        }
    };
    entries.into_iter().for_each(|entry| entry.settle(fate.clone()));
    clean
}
