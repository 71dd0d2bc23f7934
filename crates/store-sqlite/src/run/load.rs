//! Reads of one run.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{
    App, Invocation, JournalEntry, JournalPage, LoadRequest, Phase, Receipt, RestoreInvalid, Run,
    RunId, StoreError, Stored, Timestamp,
};

use super::read::run_by_id;
use super::row::int;
use crate::error::Fault;
use crate::sql::{self, pieces};

/// The row first, then what of the journal it counts: the journal only grows, so the two fit without a transaction.
pub(crate) async fn load(
    conn: &mut SqliteConnection,
    request: LoadRequest,
    now: Timestamp,
) -> Result<Option<Stored>, Fault> {
    let Some((no, run)) = whole_run(conn, request).await? else { return Ok(None) };
    let journal = journal(conn, no, &run, request.after.unwrap_or(0)).await?;
    let invocation = match request.after {
        Some(_) => None,
        None => Some(invocation(conn, no, &run).await?),
    };
    let receipt = Receipt::attest(&run);
    Ok(Some(Stored { run, invocation, journal, receipt, now }))
}

/// A run with its result.
pub(crate) async fn whole_run(
    conn: &mut SqliteConnection,
    request: LoadRequest,
) -> Result<Option<(i64, Run)>, Fault> {
    let Some((head, mut run)) = run_by_id(conn, request.run).await? else { return Ok(None) };
    read_result(conn, head.no, &mut run).await?;
    Ok(Some((head.no, run)))
}

/// Those that go on by themselves.
pub(crate) async fn open(
    conn: &mut SqliteConnection,
    app: &App,
    runs: &[RunId],
) -> Result<Vec<RunId>, Fault> {
    let mut open = Vec::new();
    for piece in pieces(runs) {
        let mut query = sqlx::query(sql::RUN_OPEN.text(piece.len()));
        for run in piece {
            query = query.bind(run.to_bytes().to_vec());
        }
        let query = sql::RUN_OPEN.blank(query, piece.len()).bind(app.as_str());
        for row in query.fetch_all(&mut *conn).await? {
            let id: [u8; 16] = row.try_get::<Vec<u8>, _>("id")?.try_into().unwrap_or_default();
            open.push(RunId::from_bytes(id));
        }
    }
    Ok(open)
}

/// Completes a run that has ended well, and says how many bytes of JSON its result has.
pub(crate) async fn read_result(
    conn: &mut SqliteConnection,
    no: i64,
    run: &mut Run,
) -> Result<usize, Fault> {
    let id = run.id;
    let Phase::Succeeded { result, .. } = &mut run.phase else { return Ok(0) };
    let Some(row) = sqlx::query(sql::RUN_RESULT).bind(no).fetch_optional(conn).await? else {
        return Ok(0);
    };
    let text: &str = row.try_get("result")?;
    *result = from_stored(text).map_err(|error| {
        let what = format!("its result: {error}");
        Fault(StoreError::Corrupt { run: id, what })
    })?;
    Ok(text.len())
}

pub(crate) async fn journal(
    conn: &mut SqliteConnection,
    no: i64,
    run: &Run,
    after: u64,
) -> Result<Result<Vec<JournalEntry>, RestoreInvalid>, Fault> {
    let rows = sqlx::query(sql::RUN_JOURNAL)
        .bind(no)
        .bind(int(after))
        .bind(int(run.seq))
        .fetch_all(conn)
        .await?;
    read_journal(&rows)
}

/// At most `limit` rows, and none besides.
pub(crate) async fn journal_page(
    conn: &mut SqliteConnection,
    id: RunId,
    from: u64,
    limit: u32,
) -> Result<Option<JournalPage>, Fault> {
    let Some((head, run)) = run_by_id(conn, id).await? else { return Ok(None) };
    let rows = sqlx::query(sql::RUN_JOURNAL_PAGE)
        .bind(head.no)
        .bind(int(from))
        .bind(int(run.seq))
        .bind(limit.clamp(1, 1_000))
        .fetch_all(conn)
        .await?;
    let (app, scope) = (run.origin.app.clone(), run.origin.scope.clone());
    Ok(Some(JournalPage { app, scope, rows: read_journal(&rows)?, facts: run.seq }))
}

fn read_journal(rows: &[SqliteRow]) -> Result<Result<Vec<JournalEntry>, RestoreInvalid>, Fault> {
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        match read_entry(row)? {
            Ok(entry) => entries.push(entry),
            Err(invalid) => return Ok(Err(invalid)),
        }
    }
    Ok(Ok(entries))
}

pub(super) fn read_entry(row: &SqliteRow) -> Result<Result<JournalEntry, RestoreInvalid>, Fault> {
    let (seq, generation): (i64, i64) = (row.try_get("seq")?, row.try_get("generation")?);
    let at = Timestamp::from_micros(row.try_get("at")?);
    let (Ok(seq), Ok(generation)) = (u64::try_from(seq), u64::try_from(generation)) else {
        let what = format!("journal row {seq} has a negative number");
        return Ok(Err(RestoreInvalid { what }));
    };
    Ok(JournalEntry::read(seq, generation, at, row.try_get("facts")?))
}

pub(crate) async fn invocation(
    conn: &mut SqliteConnection,
    no: i64,
    run: &Run,
) -> Result<Invocation, Fault> {
    let Some(row) = sqlx::query(sql::RUN_PAYLOAD).bind(no).fetch_optional(conn).await? else {
        let what = "what it was started with is gone".to_owned();
        return Err(Fault(StoreError::Corrupt { run: run.id, what }));
    };
    read_invocation(&row, run.id)
}

pub(super) fn read_invocation(row: &SqliteRow, run: RunId) -> Result<Invocation, Fault> {
    let corrupt = |what: String| Fault(StoreError::Corrupt { run, what });
    let value = |text: Option<&str>, column: &str| match text {
        None => Ok(None),
        Some(text) => {
            let read = from_stored(text).map(Some);
            read.map_err(|error| corrupt(format!("its {column}: {error}")))
        }
    };
    let trace: Option<&str> = row.try_get("trace")?;
    let trace = trace.map(from_stored).transpose();
    Ok(Invocation {
        trigger: value(row.try_get("data")?, "data")?.unwrap_or_default(),
        inputs: serde_json::Value::Null,
        context: value(row.try_get("context")?, "context")?.unwrap_or_default(),
        actor: value(row.try_get("actor")?, "actor")?,
        trace: trace.map_err(|error| corrupt(format!("its trace context: {error}")))?,
    })
}
