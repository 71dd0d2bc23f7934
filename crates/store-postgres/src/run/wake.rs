//! Waits that end: by a signal, or by their deadline.

use sqlx::{PgConnection, Row};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{
    Commit, Phase, RowInput, Run, RunId, StoreError, Timestamp, Wake, decide_row,
};

use super::lock::SignalKey;
use super::row::Head;
use super::write::{Write, write_all};
use crate::child::group;
use crate::error::Fault;
use crate::sql;

/// The wake that a run waits for, if it has occurred: with the row number of the signal, if it is one. Whoever is about
/// to park holds the lock of the signal, or that of the group.
pub(crate) async fn occurred(
    conn: &mut PgConnection,
    run: &Run,
) -> Result<Option<(Option<i64>, Wake)>, Fault> {
    let Phase::Waiting(wait) = &run.phase else { return Ok(None) };
    let Some(on) = &wait.on else { return Ok(None) };
    if let Some(step) = on.children_of() {
        let group = group(conn, run.id, &step).await?;
        let is_over = group.is_none_or(|group| group.is_over());
        return Ok(is_over.then_some((None, Wake::Children)));
    }
    let signal = SignalKey::of(run, on);
    let row = sqlx::query(sql::SIGNAL_BY_KEY)
        .bind(signal.app)
        .bind(signal.app_wide)
        .bind(signal.scope)
        .bind(signal.kind)
        .bind(signal.key)
        .fetch_optional(conn)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let data: &str = row.try_get("data")?;
    let data = from_stored(data).map_err(|error| {
        let what = format!("the signal that it waits for: {error}");
        Fault(StoreError::Corrupt { run: run.id, what })
    })?;
    Ok(Some((Some(row.try_get("no")?), Wake::Signal(data))))
}

/// Wakes waiting runs, whose rows the caller has locked: by what they wait for if it has occurred, else by their deadline. Who is not due stays.
pub(crate) async fn wake_all(
    conn: &mut PgConnection,
    runs: Vec<(Head, Run)>,
    now: Timestamp,
) -> Result<Vec<RunId>, Fault> {
    let mut decided = Vec::with_capacity(runs.len());
    for (head, run) in runs {
        let (signal, wake) = match occurred(conn, &run).await {
            Ok(Some(occurred)) => occurred,
            Ok(None) => (None, Wake::Deadline),
            Err(Fault(error @ StoreError::Corrupt { .. })) => {
                tracing::warn!(%error, "a run is not woken");
                continue;
            }
            Err(fault) => return Err(fault),
        };
        if let Ok(facts) = decide_row(&run, RowInput::Wake { wake, at_once: false }, now) {
            decided.push((head, Commit::new(&run, &facts), signal));
        }
    }
    write_decided(conn, &decided, now).await?;
    Ok(decided.iter().map(|(_, commit, _)| commit.after.id).collect())
}

/// Writes what was decided on rows that are locked in this transaction.
pub(crate) async fn write_decided(
    conn: &mut PgConnection,
    decided: &[(Head, Commit, Option<i64>)],
    now: Timestamp,
) -> Result<(), Fault> {
    let writes: Vec<Write<'_>> = decided
        .iter()
        .map(|(head, commit, signal)| {
            let mut write = Write::decided(head.clone(), commit);
            write.woken_by = *signal;
            write
        })
        .collect();
    write_all(conn, &writes, now).await
}
