//! Connections that are lent out and come back only if their borrower got to the end.
//!
//! A borrower whose future is dropped in the middle of a statement leaves a connection in an unknown state: it is
//! closed, which rolls back whatever was open, and the next borrower gets a new one.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use surefoot_kernel_core::StoreError;

use crate::error::{store_error, unavailable};
use crate::fence::{Fences, place_of};
use crate::options::SqliteOptions;

/// How many operations of SQLite's machine pass between two looks at a time limit: well under a millisecond.
const LIMIT_EVERY_OPS: i32 = 10_000;

#[derive(Debug)]
pub(crate) struct Pool {
    options: SqliteConnectOptions,
    fences: Fences,
    writes: bool,
    seats: Arc<Semaphore>,
    seat_count: usize,
    idle: Mutex<Vec<Conn>>,
}

#[derive(Debug)]
struct Conn {
    /// Boxed, so that it stays in its place: fences know it by that.
    conn: Box<SqliteConnection>,
    limit: Arc<Limit>,
    fences: Fences,
}

/// A statement that still runs when its connection is given up is interrupted: it would hold the file's lock.
/// Fences on it hold nothing any more, from the moment on in which its user gave it up.
impl Drop for Conn {
    fn drop(&mut self) {
        self.limit.set(Duration::ZERO);
        self.fences.let_go(place_of(&self.conn));
    }
}

impl Pool {
    pub(crate) fn readers(options: &SqliteOptions) -> Arc<Self> {
        let seats = usize::try_from(options.readers).unwrap_or(1);
        Arc::new(Self {
            options: options.connect_reader(),
            fences: Fences::default(),
            writes: false,
            seats: Arc::new(Semaphore::new(seats)),
            seat_count: seats,
            idle: Mutex::default(),
        })
    }

    /// The one connection that is asked for the file's change counter.
    pub(crate) fn watch(options: &SqliteOptions) -> Arc<Self> {
        Self::readers(&options.clone().readers(1))
    }

    /// Connections for transactions of the application. Each waits for its turn to write before it is borrowed, so
    /// two are enough: one at work, one that is still being closed.
    pub(crate) fn transactions(options: &SqliteOptions, fences: Fences) -> Arc<Self> {
        Arc::new(Self {
            options: options.connect(CONNECT_BUSY),
            fences,
            writes: true,
            seats: Arc::new(Semaphore::new(2)),
            seat_count: 2,
            idle: Mutex::default(),
        })
    }

    /// Waits for a seat, in fair order. Cancel safe.
    pub(crate) async fn borrow(self: &Arc<Self>) -> Result<Borrowed, StoreError> {
        let seat = self.seats.clone().acquire_owned().await;
        let seat = seat.map_err(|_| unavailable("the store is closed"))?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match idle {
            Some(conn) => conn,
            None => self.connect().await.map_err(store_error)?,
        };
        Ok(Borrowed { pool: self.clone(), conn, _seat: seat })
    }

    async fn connect(&self) -> Result<Conn, sqlx::Error> {
        let limit = Arc::new(Limit { since: Instant::now(), over_ms: AtomicU64::new(u64::MAX) });
        let mut conn = self.options.connect().await?;
        if self.writes {
            never_wait(&mut conn).await?;
            let seen = limit.clone();
            let mut handle = conn.lock_handle().await?;
            handle.set_progress_handler(LIMIT_EVERY_OPS, move || !seen.is_over());
        }
        Ok(Conn { conn: Box::new(conn), limit, fences: self.fences.clone() })
    }

    /// Seats that are taken.
    pub(crate) fn lent(&self) -> usize {
        self.seat_count.saturating_sub(self.seats.available_permits())
    }
}

/// How long opening a connection waits for a lock of the file.
pub(crate) const CONNECT_BUSY: Duration = Duration::from_secs(5);

/// From now on the connection answers "busy" at once: its user pauses as it sees fit, and never blocks a thread.
pub(crate) async fn never_wait(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query("PRAGMA busy_timeout = 0").execute(conn).await.map(drop)
}

/// Until when statements of a connection may run.
#[derive(Debug)]
pub(crate) struct Limit {
    since: Instant,
    over_ms: AtomicU64,
}

impl Limit {
    fn is_over(&self) -> bool {
        let elapsed = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        elapsed >= self.over_ms.load(Ordering::Relaxed)
    }

    /// From now on for so long.
    pub(crate) fn set(&self, span: Duration) {
        let over = self.since.elapsed().saturating_add(span).as_millis();
        self.over_ms.store(u64::try_from(over).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn clear(&self) {
        self.over_ms.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Closed when dropped.
#[derive(Debug)]
pub(crate) struct Borrowed {
    pool: Arc<Pool>,
    conn: Conn,
    _seat: OwnedSemaphorePermit,
}

impl Borrowed {
    /// The borrower got to the end: the next one may have the connection.
    pub(crate) fn give_back(self) {
        self.conn.limit.clear();
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.conn);
    }

    pub(crate) fn limit(&self) -> &Limit {
        &self.conn.limit
    }
}

impl Deref for Borrowed {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.conn.conn
    }
}

impl DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.conn.conn
    }
}
