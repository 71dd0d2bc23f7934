//! Connections that are lent out and come back only if their borrower got to the end.
//!
//! A borrower whose future is dropped in the middle of a statement leaves a connection in an unknown state: it is
//! closed, which rolls back whatever was open, and the next borrower gets a new one. (The driver's own pool hands
//! such a connection to the next borrower, with the transaction of the last one still to begin.)

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use surefoot_kernel_core::StoreError;

use crate::error::{connect_error, store_error, unavailable};
use crate::options::PostgresOptions;

/// How long opening a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A connection that was idle for so long is asked whether it still lives.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// How long a batch waits for counters of budgets: whoever has them locked is about to commit.
const BATCH_LOCK_WAIT: Duration = Duration::from_secs(2);

/// A process that stands still in the middle of a transaction of the kernel's loses it after so long, with its locks.
const STANDSTILL_MS: &str = "30000";

/// A server that acknowledges commits which are not on its disk yet is told not to; a stricter one stays as it is.
const BE_DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'";
/// A statement whose client is gone ends within a second, and lets its locks go. Not every server can do that.
const NOTICE_LOSS: &str = "SET client_connection_check_interval = 1000";

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// The kernel's own statements.
    Kernel,
    /// Batches of commits, which wait for nobody's lock for long.
    Commits,
    /// Renewals: losing one in a crash of the server ends a lease sooner, no more.
    Renewals,
    /// Statements of the application: the server's settings hold.
    Application,
}

/// How connections are opened.
#[derive(Debug, Clone)]
pub(crate) struct Connect {
    options: PgConnectOptions,
    used_for: Use,
}

impl Connect {
    pub(crate) fn new(options: &PostgresOptions, used_for: Use) -> Self {
        let connect = options.connect.clone();
        let lock_wait = match used_for {
            Use::Kernel | Use::Renewals | Use::Application => options.lock_wait,
            Use::Commits => BATCH_LOCK_WAIT,
        };
        let lock_timeout = lock_wait.as_millis().to_string();
        let connect = match used_for {
            Use::Kernel | Use::Commits | Use::Renewals => connect.options([
                // Plans are made while tables are empty, and kept: they must be those of full ones.
                ("enable_seqscan", "off"),
                ("plan_cache_mode", "force_generic_plan"),
                ("jit", "off"),
                ("default_transaction_isolation", "read committed"),
                ("statement_timeout", "0"),
                ("lock_timeout", lock_timeout.as_str()),
                ("idle_in_transaction_session_timeout", STANDSTILL_MS),
            ]),
            Use::Application => connect,
        };
        Self { options: connect, used_for }
    }

    pub(crate) async fn open(&self) -> Result<PgConnection, StoreError> {
        let conn = tokio::time::timeout(CONNECT_LIMIT, self.options.connect()).await;
        let conn = conn.map_err(|_| unavailable("the server does not answer a connection"))?;
        let mut conn = conn.map_err(connect_error)?;
        match self.used_for {
            Use::Renewals => {
                let relaxed = "SET synchronous_commit = off";
                sqlx::raw_sql(relaxed).execute(&mut conn).await.map_err(store_error)?;
            }
            Use::Kernel | Use::Commits | Use::Application => be_durable(&mut conn).await?,
        }
        drop(sqlx::raw_sql(NOTICE_LOSS).execute(&mut conn).await);
        Ok(conn)
    }
}

async fn be_durable(conn: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::raw_sql(BE_DURABLE).execute(conn).await.map(drop).map_err(store_error)
}

#[derive(Debug)]
pub(crate) struct Pool {
    connect: Connect,
    seats: Arc<Semaphore>,
    seat_count: usize,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    conn: PgConnection,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(options: &PostgresOptions, used_for: Use, seats: usize) -> Arc<Self> {
        Arc::new(Self {
            connect: Connect::new(options, used_for),
            seats: Arc::new(Semaphore::new(seats)),
            seat_count: seats,
            idle: Mutex::default(),
        })
    }

    /// Waits for a seat, in fair order. Cancel safe.
    pub(crate) async fn borrow(self: &Arc<Self>) -> Result<Borrowed, StoreError> {
        let seat = self.seats.clone().acquire_owned().await;
        let seat = seat.map_err(|_| unavailable("the store is closed"))?;
        let conn = match self.living().await {
            Some(conn) => conn,
            None => self.connect.open().await?,
        };
        Ok(Borrowed { pool: self.clone(), conn, _seat: seat })
    }

    /// An idle connection, if one is left that lives.
    async fn living(&self) -> Option<PgConnection> {
        loop {
            let Idle { mut conn, since } =
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if since.elapsed() < TRUSTED_FOR || conn.ping().await.is_ok() {
                return Some(conn);
            }
        }
    }

    /// Seats that are taken.
    pub(crate) fn lent(&self) -> usize {
        self.seat_count.saturating_sub(self.seats.available_permits())
    }
}

/// Closed when dropped.
#[derive(Debug)]
pub(crate) struct Borrowed {
    pool: Arc<Pool>,
    conn: PgConnection,
    _seat: OwnedSemaphorePermit,
}

impl Borrowed {
    /// The borrower got to the end: the next one may have the connection.
    pub(crate) fn give_back(self) {
        let idle = Idle { conn: self.conn, since: Instant::now() };
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(idle);
    }
}

impl Deref for Borrowed {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.conn
    }
}

impl DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.conn
    }
}
