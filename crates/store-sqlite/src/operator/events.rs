//! Events and signals, for people.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{
    App, EventFilter, EventId, EventRow, EventStatus, Page, Scope, SignalRow, Timestamp,
};

use super::page::{Place, apps_of, page, read_cursor, rows_to_read};
use crate::error::Fault;
use crate::event::emit::{read_event_id, read_json, unpacked, unreadable};
use crate::sql;

/// Events, newest first.
pub(crate) async fn list(
    conn: &mut SqliteConnection,
    filter: &EventFilter,
) -> Result<Page<EventRow>, Fault> {
    let cursor = read_cursor(filter.cursor.as_deref())?;
    let statuses = filter.status.map_or_else(|| EventStatus::ALL.to_vec(), |it| vec![it]);
    let mut events = Vec::new();
    for app in apps_of(conn, filter.app.as_ref()).await? {
        for status in &statuses {
            events.extend(in_status(conn, filter, (&app, *status), cursor).await?);
        }
    }
    Ok(page(events, filter.limit, |row: &EventRow| (row.recorded_at, row.event)))
}

/// A page of one status. An index has each in order.
async fn in_status(
    conn: &mut SqliteConnection,
    filter: &EventFilter,
    (app, status): (&App, EventStatus),
    cursor: Option<Place<EventId>>,
) -> Result<Vec<EventRow>, Fault> {
    let (at, id) = cursor.unwrap_or((Timestamp::MAX, EventId::from_bytes([0xff; 16])));
    let texts: &[&'static str] = match filter.kind {
        Some(_) => &[sql::OPERATOR_EVENTS_OF_TYPE],
        None => &[sql::OPERATOR_EVENTS, sql::OPERATOR_EVENTS_EMPTIED],
    };
    let mut events = Vec::new();
    for text in texts {
        let rows = sqlx::query(*text)
            .bind(app.as_str())
            .bind(status.as_str())
            .bind(at.micros())
            .bind(id.to_bytes().to_vec())
            .bind(filter.scope.as_ref().map(Scope::as_str))
            .bind(filter.kind.as_deref())
            .bind(rows_to_read(filter.limit))
            .fetch_all(&mut *conn)
            .await?;
        for row in &rows {
            events.push(read_event(row)?);
        }
    }
    Ok(events)
}

pub(crate) async fn event_by_id(
    conn: &mut SqliteConnection,
    event: EventId,
) -> Result<Option<EventRow>, Fault> {
    let query = sqlx::query(sql::OPERATOR_EVENT).bind(event.to_bytes().to_vec());
    query.fetch_optional(conn).await?.as_ref().map(read_event).transpose()
}

fn read_event(row: &SqliteRow) -> Result<EventRow, Fault> {
    let status: &str = row.try_get("status")?;
    let known = EventStatus::ALL.iter().copied().find(|known| known.as_str() == status);
    Ok(EventRow {
        event: read_event_id(row)?,
        scope: Scope::from(row.try_get::<String, _>("scope")?),
        kind: row.try_get("kind")?,
        dedupe_key: row.try_get("dedupe_key")?,
        tags: read_json(row, "tags")?.unwrap_or_default(),
        status: known.ok_or_else(unreadable)?,
        matched: row.try_get("matched")?,
        attempts: row.try_get("attempts")?,
        error: row.try_get("error")?,
        occurred_at: Timestamp::from_micros(row.try_get("occurred_at")?),
        recorded_at: Timestamp::from_micros(row.try_get("recorded_at")?),
        runs: unpacked(row.try_get("runs")?),
        is_expired: row.try_get("is_expired")?,
    })
}

/// Signals that no run has used, oldest first.
pub(crate) async fn signals(
    conn: &mut SqliteConnection,
    (app, scope): (&App, Option<&Scope>),
    limit: u32,
    now: Timestamp,
) -> Result<Vec<SignalRow>, Fault> {
    let query = sqlx::query(sql::OPERATOR_SIGNALS).bind(app.as_str()).bind(limit);
    let rows = query.bind(scope.map(Scope::as_str)).fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            let is_app_wide: bool = row.try_get("app_wide")?;
            let scope: String = row.try_get("scope")?;
            Ok(SignalRow {
                scope: (!is_app_wide).then(|| Scope::from(scope)),
                kind: row.try_get("kind")?,
                key: row.try_get("key")?,
                data: read_json(row, "data")?.unwrap_or_default(),
                recorded_at: Timestamp::from_micros(row.try_get("recorded_at")?),
                now,
            })
        })
        .collect()
}
