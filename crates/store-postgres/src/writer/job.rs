//! What the kernel has written: operations, each in a transaction of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::PgConnection;

use surefoot_kernel_core::{StoreError, Timestamp};

use super::begin::{begin, begin_alone, commit, rollback};
use crate::clock::StoreClock;
use crate::error::{Kind, PortError, commit_error, kind, store_error};
use crate::pool::{Borrowed, Pool};

/// On whose connections an operation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// A worker waits with a commit in doubt.
    TakeOver,
    /// A commit that waits for its locks.
    Alone,
    Claim,
    Rest,
}

/// Past so long, an operation that can be continued later stops: it holds locks.
const HOLD_MAX: Duration = Duration::from_millis(50);
/// How often an operation is begun again that the database refused in favour of another one.
const TRIES: u32 = 8;

/// What an operation may read beside its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cx {
    /// The store's time, one for the whole transaction.
    pub(crate) now: Timestamp,
    /// Past it, an operation that can be continued later stops.
    pub(crate) pause_at: Instant,
}

impl Cx {
    pub(crate) fn is_long(self) -> bool {
        Instant::now() >= self.pause_at
    }
}

/// An operation inside a transaction of its own, which an error rolls back. It may be run again after that.
///
/// Others write at the same time: what an operation decides on, it has locked first, and reads in a statement after
/// the one that waited for the lock.
pub(crate) trait Op: Send + Sync + 'static {
    type Out: Send + 'static;
    type Err: PortError;
    const LANE: Lane;

    /// Two with the same key wait for each other: the second one sees all that the first one did.
    fn alone(&self) -> Option<i32> {
        None
    }

    fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> impl Future<Output = Result<Self::Out, Self::Err>> + Send + 'a;
}

/// How one try ended that gave no answer.
enum Failed<E> {
    /// Nothing was begun.
    ToBegin(StoreError),
    /// Rolled back, or nobody knows.
    InIt(E),
}

/// Runs an operation to its end. Not cancel safe: see that nobody drops it.
pub(super) async fn run_to_end<O: Op>(
    op: &O,
    clock: &StoreClock,
    pool: &Arc<Pool>,
) -> Result<O::Out, O::Err> {
    let mut tries = 0;
    loop {
        tries += 1;
        match attempt(op, pool.borrow().await?, clock).await {
            Ok(out) => return Ok(out),
            // A connection that was idle while the server was restarted; the next one is a new one.
            Err(Failed::ToBegin(_)) if tries < TRIES => {}
            Err(Failed::ToBegin(error)) => return Err(error.into()),
            Err(Failed::InIt(error)) => {
                let is_conflict = matches!(error.store(), Some(StoreError::TransactionConflict(_)));
                if !is_conflict || tries >= TRIES {
                    return Err(error);
                }
                tokio::time::sleep(Duration::from_millis(1 << tries)).await;
            }
        }
    }
}

async fn attempt<O: Op>(
    op: &O,
    mut conn: Borrowed,
    clock: &StoreClock,
) -> Result<O::Out, Failed<O::Err>> {
    let began = match op.alone() {
        None => begin(&mut conn).await,
        Some(key) => begin_alone(&mut conn, key).await,
    };
    let now = began.map_err(|error| match kind(&error) {
        // It has waited for as long as anybody may.
        Kind::Locked => Failed::InIt(store_error(error).into()),
        Kind::Refused | Kind::Conflict | Kind::Aborted | Kind::Unavailable => {
            Failed::ToBegin(store_error(error))
        }
    })?;
    let cx = Cx { now: clock.at(now), pause_at: Instant::now() + HOLD_MAX };
    match op.run(&mut conn, cx).await {
        Ok(out) => {
            let committed = commit(&mut conn).await;
            committed.map_err(|error| Failed::InIt(commit_error(error).into()))?;
            conn.give_back();
            Ok(out)
        }
        Err(error) => {
            if rollback(&mut conn).await.is_ok() {
                conn.give_back();
            }
            Err(Failed::InIt(error))
        }
    }
}
