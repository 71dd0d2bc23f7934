//! Events and signals, for people.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::{
    App, EventFilter, EventId, EventRow, EventStatus, Page, RunId, Scope, SignalRow, Timestamp,
};

use super::page::{Place, apps_of, page, read_cursor, rows_to_read};
use crate::error::{Fault, unreadable};
use crate::keys::Key;
use crate::plan::list::{read_json, read_key, read_small, read_time};
use crate::sql;

/// Events, newest first.
pub(crate) async fn list(
    conn: &mut PgConnection,
    filter: &EventFilter,
) -> Result<Page<EventRow>, Fault> {
    let cursor = read_cursor(filter.cursor.as_deref())?;
    if filter.fits_nothing() {
        return Ok(Page::empty());
    }
    let mut events = Vec::new();
    for app in apps_of(conn, filter.app.as_ref()).await? {
        events.extend(of_app(conn, filter, &app, cursor).await?);
    }
    Ok(page(events, filter.limit, |row: &EventRow| (row.recorded_at, row.event)))
}

/// Events of a scope that are taken one by one. Of more, a page is soon found on the way through all events.
const PLACED_MANY: i64 = 20_000;

async fn of_app(
    conn: &mut PgConnection,
    filter: &EventFilter,
    app: &App,
    cursor: Option<Place<EventId>>,
) -> Result<Vec<EventRow>, Fault> {
    let statuses: Vec<&str> = match filter.status {
        Some(status) => vec![status.as_str()],
        None => EventStatus::ALL.iter().map(|status| status.as_str()).collect(),
    };
    let text = match (&filter.scope, &filter.kind) {
        (Some(scope), _) if has_few(conn, app, scope).await? => sql::OPERATOR_EVENTS_PLACED,
        (_, Some(_)) => sql::OPERATOR_EVENTS_OF_TYPE,
        (_, None) => sql::OPERATOR_EVENTS,
    };
    let (at, id) = cursor.unwrap_or((Timestamp::MAX, EventId::from_bytes([0xff; 16])));
    let rows = sqlx::query(text)
        .bind(app.as_str())
        .bind(statuses)
        .bind(at.micros())
        .bind(id.key())
        .bind(filter.scope.as_ref().map(Scope::as_str))
        .bind(filter.kind.as_deref())
        .bind(rows_to_read(filter.limit))
        .fetch_all(conn)
        .await?;
    rows.iter().map(read_event).collect()
}

async fn has_few(conn: &mut PgConnection, app: &App, scope: &Scope) -> Result<bool, Fault> {
    let count = sqlx::query(sql::OPERATOR_COUNT_PLACED_EVENTS).bind(app.as_str());
    let count = count.bind(scope.as_str()).bind(PLACED_MANY + 1).fetch_one(conn).await?;
    Ok(count.try_get::<i64, _>("count")? <= PLACED_MANY)
}

pub(crate) async fn event_by_id(
    conn: &mut PgConnection,
    event: EventId,
) -> Result<Option<EventRow>, Fault> {
    let query = sqlx::query(sql::OPERATOR_EVENT).bind(event.key());
    query.fetch_optional(conn).await?.as_ref().map(read_event).transpose()
}

fn read_event(row: &PgRow) -> Result<EventRow, Fault> {
    let status: &str = row.try_get("status")?;
    let known = EventStatus::ALL.iter().copied().find(|known| known.as_str() == status);
    let runs: Vec<Uuid> = row.try_get("runs")?;
    Ok(EventRow {
        event: read_key(row, "id")?,
        scope: Scope::from(row.try_get::<String, _>("scope")?),
        kind: row.try_get("kind")?,
        dedupe_key: row.try_get("dedupe_key")?,
        tags: read_json(row, "tags")?.unwrap_or_default(),
        status: known.ok_or_else(unreadable)?,
        matched: read_small(row, "matched")?,
        attempts: read_small(row, "attempts")?,
        error: row.try_get("error")?,
        occurred_at: read_time(row, "occurred_at")?,
        recorded_at: read_time(row, "recorded_at")?,
        runs: runs.into_iter().map(RunId::of_key).collect(),
        is_expired: row.try_get("is_expired")?,
    })
}

/// Signals that no run has used, oldest first.
pub(crate) async fn signals(
    conn: &mut PgConnection,
    (app, scope): (&App, Option<&Scope>),
    limit: u32,
    now: Timestamp,
) -> Result<Vec<SignalRow>, Fault> {
    let query = sqlx::query(sql::OPERATOR_SIGNALS).bind(app.as_str()).bind(i64::from(limit));
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
                recorded_at: read_time(row, "recorded_at")?,
                now,
            })
        })
        .collect()
}
