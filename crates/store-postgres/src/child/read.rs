//! Children as their parent's step and people see them.

use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{
    ChildResult, ChildrenPage, ChildrenRequest, GroupRow, Run, RunId, RunState, StepKey,
};

use super::settle::moved_on;
use super::{count, group};
use crate::error::Fault;
use crate::keys::Key;
use crate::run::load::read_result;
use crate::run::row::read_run;
use crate::sql;

/// Bytes of results after which a page ends.
const PAGE_BYTES: usize = 1024 * 1024;

/// Results are read one by one, so that no more of them are in memory than a page has.
pub(crate) async fn page(
    conn: &mut PgConnection,
    request: &ChildrenRequest,
) -> Result<ChildrenPage, Fault> {
    let limit = request.limit.clamp(1, 1_000);
    let total = group(conn, request.parent, &request.step).await?.map_or(0, |group| group.total);
    let rows = sqlx::query(sql::CHILD_READ)
        .bind(request.parent.key())
        .bind(request.step.as_str())
        .bind(i64::from(request.from))
        // One more than the limit says where the next page begins.
        .bind(i64::from(limit).saturating_add(1))
        .fetch_all(&mut *conn)
        .await?;
    let mut page = ChildrenPage { children: Vec::new(), total, next: None };
    let mut bytes = 0_usize;
    for row in &rows {
        let (_, mut run) = read_run(row)?;
        let index = run.origin.parent.as_ref().map_or(0, |parent| parent.index);
        let is_full = page.children.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        if is_full || bytes >= PAGE_BYTES {
            page.next = Some(index);
            break;
        }
        bytes = bytes.saturating_add(read_result(conn, &mut run).await?);
        page.children.push(ChildResult::of(&run, index));
    }
    Ok(page)
}

/// The groups of a run, by step.
pub(crate) async fn groups(conn: &mut PgConnection, parent: RunId) -> Result<Vec<GroupRow>, Fault> {
    let rows = sqlx::query(sql::CHILD_GROUPS).bind(parent.key()).fetch_all(&mut *conn).await?;
    let mut groups = Vec::with_capacity(rows.len());
    for row in &rows {
        let step = StepKey::from(row.try_get::<String, _>("step")?);
        groups.push(GroupRow {
            states: states(conn, parent, &step).await?,
            step,
            total: count(row, "total")?,
            live: count(row, "live")?,
            held: count(row, "held")?,
            parallel: count(row, "parallel")?,
        });
    }
    Ok(groups)
}

async fn states(
    conn: &mut PgConnection,
    parent: RunId,
    step: &StepKey,
) -> Result<Vec<(RunState, u32)>, Fault> {
    let query = sqlx::query(sql::CHILD_STATES).bind(parent.key()).bind(step.as_str());
    let rows = query.fetch_all(conn).await?;
    let mut states: Vec<(RunState, u32)> = RunState::ALL.iter().map(|state| (*state, 0)).collect();
    for row in &rows {
        let name: &str = row.try_get("state")?;
        if let Some((_, of_state)) = states.iter_mut().find(|(state, _)| state.as_str() == name) {
            *of_state = count(row, "count")?;
        }
    }
    Ok(states)
}

/// The group of a child, and whether it is not tried again since one above it has moved on.
pub(crate) async fn group_of(
    conn: &mut PgConnection,
    run: &Run,
) -> Result<Option<(GroupRow, bool)>, Fault> {
    let Some(of) = &run.origin.parent else { return Ok(None) };
    let Some(group) = group(conn, of.run, &of.step).await? else { return Ok(None) };
    let row = GroupRow {
        step: of.step.clone(),
        total: group.total,
        live: group.live,
        held: group.held,
        parallel: group.parallel,
        states: states(conn, of.run, &of.step).await?,
    };
    let is_failed = run.state() == RunState::Failed;
    let is_taken = is_failed && moved_on(conn, of).await?.is_some();
    Ok(Some((row, is_taken)))
}
