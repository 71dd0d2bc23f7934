//! Signals: recorded once, and the runs that they wake.

use sqlx::PgConnection;

use surefoot_kernel_core::{RunId, SendSignal, SignalError, SignalSent, Timestamp};

use crate::error::Fault;
use crate::plan::list::read_key;
use crate::retention::place::being_deleted;
use crate::run::lock::{Locks, SignalKey, lock_signal};
use crate::run::read::{lock_free_rows, readable};
use crate::run::wake::wake_all;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// Runs that one signal wakes at once; recovery wakes the rest.
const WAKE_LIMIT: usize = 1_000;

pub(crate) struct Send(pub(crate) SendSignal);

impl Op for Send {
    type Out = SignalSent;
    type Err = SignalError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<SignalSent, SignalError> {
        send(conn, &self.0, cx.now).await
    }
}

/// The caller has a transaction.
pub(crate) async fn send(
    conn: &mut PgConnection,
    send: &SendSignal,
    now: Timestamp,
) -> Result<SignalSent, SignalError> {
    if let Some(scope) = &send.scope
        && let Some(place) = being_deleted(conn, send.app.as_str(), scope.as_str(), None).await?
    {
        return Err(SignalError::BeingDeleted { place });
    }
    Ok(record(conn, send, now).await?)
}

async fn record(
    conn: &mut PgConnection,
    send: &SendSignal,
    now: Timestamp,
) -> Result<SignalSent, Fault> {
    let signal = SignalKey {
        app: send.app.as_str(),
        app_wide: send.scope.is_none(),
        scope: send.scope.as_ref().map_or("", |scope| scope.as_str()),
        kind: &send.signal.kind,
        key: &send.signal.key,
    };
    lock_signal(conn, signal, Locks::Wait).await?;
    let recorded = sqlx::query(sql::SIGNAL_INSERT)
        .bind(signal.app)
        .bind(signal.app_wide)
        .bind(signal.scope)
        .bind(signal.kind)
        .bind(signal.key)
        .bind(send.signal.data.text())
        .bind(now.micros())
        .execute(&mut *conn)
        .await?;
    let mut waiting = waiting_on(conn, signal).await?;
    let are_all = waiting.len() <= WAKE_LIMIT;
    waiting.truncate(WAKE_LIMIT);
    // Who has a run of these, and wants the signal as well, would wait for us: such a run is for recovery.
    let free = lock_free_rows(conn, &waiting).await?;
    if !are_all || free.len() < waiting.len() {
        more(conn, signal).await?;
    }
    let mut woken: Vec<RunId> = wake_all(conn, readable(&free), now).await?;
    woken.sort_unstable();
    Ok(SignalSent { new: recorded.rows_affected() == 1, woken })
}

/// Runs that wait for it: one more than is woken says whether there are more.
async fn waiting_on(conn: &mut PgConnection, signal: SignalKey<'_>) -> Result<Vec<RunId>, Fault> {
    let rows = sqlx::query(sql::RUN_WAITING_ON)
        .bind(signal.app)
        .bind(signal.app_wide)
        .bind(signal.scope)
        .bind(signal.kind)
        .bind(signal.key)
        .bind(i64::try_from(WAKE_LIMIT + 1).unwrap_or(i64::MAX))
        .fetch_all(conn)
        .await?;
    rows.iter().map(|row| read_key(row, "id")).collect()
}

/// Recovery looks after those that wait still.
async fn more(conn: &mut PgConnection, signal: SignalKey<'_>) -> Result<(), Fault> {
    sqlx::query(sql::SIGNAL_MORE)
        .bind(signal.app)
        .bind(signal.app_wide)
        .bind(signal.scope)
        .bind(signal.kind)
        .bind(signal.key)
        .execute(conn)
        .await?;
    Ok(())
}
