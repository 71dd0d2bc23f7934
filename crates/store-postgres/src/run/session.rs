//! Worker sessions, and what workers must be able to run.

use sqlx::{PgConnection, Row};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{App, SessionReport, StoreError};

use super::row::json;
use crate::error::Fault;
use crate::keys::Key;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

pub(crate) struct Report(pub(crate) SessionReport);

impl Op for Report {
    type Out = ();
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(&'a self, conn: &'a mut PgConnection, cx: Cx) -> Result<(), StoreError> {
        let report = &self.0;
        let query = sqlx::query(sql::SESSION_REPORT)
            .bind(report.session.key())
            .bind(report.app.as_str())
            .bind(&*report.name)
            .bind(report.mode.as_str())
            .bind(json(&report.offers)?)
            .bind(report.tree.map(|root| root.key()))
            .bind(i64::from(report.slots))
            .bind(i64::from(report.busy))
            .bind(i64::from(report.stuck))
            .bind(report.ended)
            .bind(cx.now.micros());
        query.execute(conn).await.map_err(crate::error::store_error)?;
        Ok(())
    }
}

/// The distinct footprints of runs that have not ended. One that cannot be read is left out.
pub(crate) async fn footprints(
    conn: &mut PgConnection,
    app: &App,
) -> Result<Vec<Footprint>, Fault> {
    let rows = sqlx::query(sql::RUN_FOOTPRINTS).bind(app.as_str()).fetch_all(conn).await?;
    let mut footprints = Vec::with_capacity(rows.len());
    for row in &rows {
        let text: Option<&str> = row.try_get("footprint")?;
        footprints.extend(text.and_then(|text| from_stored(text).ok()));
    }
    Ok(footprints)
}
