//! Signals: recorded once, and the runs that they wake.

use sqlx::SqliteConnection;

use surefoot_kernel_core::{RunId, SendSignal, SignalError, SignalSent, Timestamp};

use crate::error::Fault;
use crate::retention::place::being_deleted;
use crate::run::row::read_run;
use crate::run::wake::wake_all;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// Runs that one signal wakes at once; recovery wakes the rest.
const WAKE_LIMIT: u32 = 1_000;

pub(crate) struct Send(pub(crate) SendSignal);

impl Op for Send {
    type Out = SignalSent;
    type Err = SignalError;
    const LANE: Lane = Lane::Rest;

    fn bytes(&self) -> usize {
        self.0.signal.data.text().len()
    }

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<SignalSent, SignalError> {
        send(conn, &self.0, cx.now).await
    }
}

/// The caller holds a write transaction.
pub(crate) async fn send(
    conn: &mut SqliteConnection,
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
    conn: &mut SqliteConnection,
    send: &SendSignal,
    now: Timestamp,
) -> Result<SignalSent, Fault> {
    let app = send.app.as_str();
    let is_app_wide = send.scope.is_none();
    let scope = send.scope.as_ref().map_or("", |scope| scope.as_str());
    let (kind, key) = (&*send.signal.kind, &*send.signal.key);
    let recorded = sqlx::query(sql::SIGNAL_INSERT)
        .bind(app)
        .bind(is_app_wide)
        .bind(scope)
        .bind(kind)
        .bind(key)
        .bind(send.signal.data.text())
        .bind(now.micros())
        .execute(&mut *conn)
        .await?;
    let rows = sqlx::query(sql::RUN_WAITING_ON)
        .bind(app)
        .bind(is_app_wide)
        .bind(scope)
        .bind(kind)
        .bind(key)
        // One more than is woken says whether there are more.
        .bind(WAKE_LIMIT + 1)
        .fetch_all(&mut *conn)
        .await?;
    let limit = usize::try_from(WAKE_LIMIT).unwrap_or(usize::MAX);
    if rows.len() > limit {
        let query = sqlx::query(sql::SIGNAL_MORE).bind(app).bind(is_app_wide);
        query.bind(scope).bind(kind).bind(key).execute(&mut *conn).await?;
    }
    let mut waiting = Vec::with_capacity(rows.len());
    for row in rows.iter().take(limit) {
        match read_run(row) {
            Ok(read) => waiting.push(read),
            Err(Fault(error)) => tracing::warn!(%error, "a run is not woken"),
        }
    }
    let mut woken: Vec<RunId> = wake_all(conn, waiting, now).await?;
    woken.sort_unstable();
    Ok(SignalSent { new: recorded.rows_affected() == 1, woken })
}
