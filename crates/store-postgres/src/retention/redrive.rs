//! Dead-lettered events that are dispatched after all.

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::{
    EventStatus, Redrive, Redriven, RetentionError, Timestamp, WorkflowKey,
};

use crate::error::{Fault, store_error};
use crate::keys::Key;
use crate::plan::list::read_small;
use crate::run::write::{About, audit_write};
use crate::sql;
use crate::writer::{Cx, Lane, Op};

pub(crate) struct RedriveEvent(pub(crate) Redrive);

impl Op for RedriveEvent {
    type Out = Redriven;
    type Err = RetentionError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Redriven, RetentionError> {
        let event = self.0.event;
        let query = sqlx::query(sql::RETENTION_EVENT).bind(event.key());
        let row = query.fetch_optional(&mut *conn).await.map_err(store_error)?;
        let missing = || RetentionError::NotFound { what: format!("event {event}") };
        let row = row.ok_or_else(missing)?;
        if row.try_get("is_expired").map_err(store_error)? {
            return Err(RetentionError::Expired { event });
        }
        let status: &str = row.try_get("status").map_err(store_error)?;
        if status != EventStatus::DeadLettered.as_str() {
            let known = EventStatus::ALL.iter().map(|known| known.as_str());
            let status = known.into_iter().find(|known| *known == status).unwrap_or("unknown");
            return Err(RetentionError::NotDeadLettered { event, status });
        }
        Ok(redrive(conn, &self.0, &row, cx.now).await?)
    }
}

async fn redrive(
    conn: &mut PgConnection,
    asked: &Redrive,
    row: &sqlx::postgres::PgRow,
    now: Timestamp,
) -> Result<Redriven, Fault> {
    let id: Uuid = row.try_get("id")?;
    let gone = sqlx::query(sql::RETENTION_DROP_GONE_DELIVERIES).bind(id);
    let gone = gone.fetch_all(&mut *conn).await?;
    let gone = gone.iter().map(|row| Ok(row.try_get::<String, _>("workflow")?.into()));
    let dropped = gone.collect::<Result<Vec<WorkflowKey>, Fault>>()?;
    let count = sqlx::query(sql::RETENTION_COUNT_DELIVERIES).bind(id).fetch_one(&mut *conn).await?;
    let deliveries = read_small(&count, "count")?;
    let status = if deliveries > 0 { EventStatus::Pending } else { EventStatus::Unmatched };
    sqlx::query(sql::RETENTION_REDRIVE)
        .bind(id)
        .bind(status.as_str())
        .bind((deliveries > 0).then_some(now.micros()))
        .bind((deliveries == 0).then_some(now.micros()))
        .execute(&mut *conn)
        .await?;
    let redriven = Redriven { deliveries, dropped };
    let about = About { app: row.try_get("app")?, scope: row.try_get("scope")? };
    for audit in asked.audit(&redriven) {
        audit_write(conn, about, &audit, (None, None), now).await?;
    }
    Ok(redriven)
}
