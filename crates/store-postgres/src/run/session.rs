//! Worker sessions, and what workers must be able to run.

use sqlx::PgConnection;

use surefoot_kernel_core::{SessionReport, StoreError};

use super::row::json;
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
