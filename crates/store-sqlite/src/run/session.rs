//! Worker sessions, and what workers must be able to run.

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{App, Mode, SessionReport, StoreError, Timestamp, WorkDue};

use super::row::json;
use crate::error::Fault;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

pub(crate) struct Report(pub(crate) SessionReport);

impl Op for Report {
    type Out = ();
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(&'a self, conn: &'a mut SqliteConnection, cx: Cx) -> Result<(), StoreError> {
        let report = &self.0;
        let query = sqlx::query(sql::SESSION_REPORT)
            .bind(report.session.to_bytes().to_vec())
            .bind(report.app.as_str())
            .bind(&*report.name)
            .bind(report.mode.as_str())
            .bind(json(&report.offers)?)
            .bind(report.tree.map(|root| root.to_bytes().to_vec()))
            .bind(report.slots)
            .bind(report.busy)
            .bind(report.stuck)
            .bind(report.ended)
            .bind(cx.now.micros());
        query.execute(conn).await.map_err(crate::error::store_error)?;
        Ok(())
    }
}

/// The distinct footprints of runs that have not ended, and those of them of which a run is due. One that cannot be read
/// is left out.
pub(crate) async fn footprints(
    conn: &mut SqliteConnection,
    app: &App,
    mode: Mode,
    now: Timestamp,
) -> Result<WorkDue, Fault> {
    let query = sqlx::query(sql::RUN_FOOTPRINTS);
    let query = query.bind(app.as_str()).bind(mode.as_str()).bind(now.micros());
    let mut work = WorkDue::default();
    for row in query.fetch_all(conn).await? {
        let text: Option<&str> = row.try_get("footprint")?;
        let Some(footprint) = text.and_then(|text| from_stored::<Footprint>(text).ok()) else {
            continue;
        };
        if row.try_get("is_due")? {
            work.claimable.push(footprint.clone());
        }
        work.footprints.push(footprint);
    }
    Ok(work)
}
