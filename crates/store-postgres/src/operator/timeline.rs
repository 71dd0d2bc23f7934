//! Runs counted over time, for charts.

use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{Micros, RunCount, RunSpan, RunState, Scope};

use crate::error::{Fault, unreadable};
use crate::plan::list::read_count;
use crate::sql;

/// Ranges of one index, counted; what it answers does not grow with the runs.
pub(crate) async fn timeline(
    conn: &mut PgConnection,
    span: &RunSpan,
) -> Result<Vec<RunCount>, Fault> {
    let ended = RunState::ALL.iter().filter(|state| state.is_terminal());
    let query = sqlx::query(sql::OPERATOR_TIMELINE)
        .bind(span.app.as_str())
        .bind(span.from.micros())
        .bind(span.until().micros())
        .bind(span.slice_micros())
        .bind(span.scope.as_ref().map(Scope::as_str))
        .bind(i64::from(span.slices))
        .bind(ended.map(|state| state.as_str()).collect::<Vec<_>>());
    let rows = query.fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            let state: &str = row.try_get("state")?;
            let state = RunState::ALL.iter().find(|known| known.as_str() == state);
            let slice = u32::try_from(row.try_get::<i64, _>("slice")?).map_err(|_| unreadable())?;
            let worst_lag = row.try_get::<Option<i64>, _>("worst_lag")?.map(Micros::new);
            let (state, count) = (*state.ok_or_else(unreadable)?, read_count(row, "count")?);
            Ok(RunCount { slice, state, count, worst_lag })
        })
        .collect()
}
