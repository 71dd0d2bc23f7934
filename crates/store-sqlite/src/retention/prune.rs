//! What an operator's policy prunes.

use std::collections::BTreeSet;

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::retention::Force;
use surefoot_kernel_core::{
    Prunable, Prune, Pruned, RunId, RunState, Scope, StoreError, Timestamp,
};

use super::expire::empty;
use super::tree::{AuditOf, begun, fell_all};
use super::{clamp, held, length};
use crate::error::Fault;
use crate::event::emit::sixteen;
use crate::run::write::{About, audit_write};
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// What a policy fits, found without a lock: trees of runs, or rows of events.
#[derive(Debug, Default)]
pub(crate) struct Found {
    roots: Vec<RunId>,
    events: Vec<i64>,
    more: bool,
}

pub(crate) async fn find(conn: &mut SqliteConnection, prune: &Prune) -> Result<Found, Fault> {
    match &prune.what {
        Prunable::Runs { states } => find_roots(conn, prune, states).await,
        Prunable::UnmatchedPayloads => find_unmatched(conn, prune).await,
        Prunable::SpentSignals | Prunable::Audit => Ok(Found::default()),
    }
}

async fn find_roots(
    conn: &mut SqliteConnection,
    prune: &Prune,
    states: &[RunState],
) -> Result<Found, Fault> {
    let limit = clamp(prune.limit);
    // What was begun where the policy reaches is ended first, whatever else it says now.
    let mut roots = begun(conn, (&prune.app, prune.scope.as_ref()), limit).await?;
    if !roots.is_empty() {
        return Ok(Found { roots, more: true, ..Found::default() });
    }
    let states: BTreeSet<RunState> =
        states.iter().copied().filter(|state| state.is_terminal()).collect();
    let mut more = false;
    for state in states {
        let rows = sqlx::query(sql::RETENTION_PRUNABLE_ROOTS)
            .bind(prune.app.as_str())
            .bind(state.as_str())
            .bind(prune.before.micros())
            .bind(prune.scope.as_ref().map(Scope::as_str))
            .bind(held(Force::No)?)
            .bind(limit)
            .fetch_all(&mut *conn)
            .await?;
        more |= length(rows.len()) == limit;
        for row in &rows {
            roots.push(RunId::from_bytes(sixteen(row, "id")?));
        }
    }
    Ok(Found { roots, more, ..Found::default() })
}

async fn find_unmatched(conn: &mut SqliteConnection, prune: &Prune) -> Result<Found, Fault> {
    let limit = clamp(prune.limit);
    let rows = sqlx::query(sql::RETENTION_EVENTS_UNMATCHED)
        .bind(prune.app.as_str())
        .bind(prune.before.micros())
        .bind(prune.scope.as_ref().map(Scope::as_str))
        .bind(limit)
        .fetch_all(conn)
        .await?;
    let events =
        rows.iter().map(|row| Ok(row.try_get("no")?)).collect::<Result<Vec<_>, Fault>>()?;
    Ok(Found { more: length(events.len()) == limit, events, ..Found::default() })
}

/// Deletes what was found, as far as it still fits.
pub(crate) struct Carry {
    pub(crate) prune: Prune,
    pub(crate) found: Found,
}

impl Op for Carry {
    type Out = Pruned;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Pruned, StoreError> {
        Ok(carry(conn, self, cx).await?)
    }
}

async fn carry(conn: &mut SqliteConnection, op: &Carry, cx: Cx) -> Result<Pruned, Fault> {
    let Carry { prune, found } = op;
    let limit = clamp(prune.limit);
    let (deleted, more) = match &prune.what {
        Prunable::Runs { .. } => {
            let how = (Force::No, AuditOf::Kept);
            fell_all(conn, &found.roots, how, limit, cx).await?
        }
        Prunable::UnmatchedPayloads => {
            let done_by = Timestamp::from_micros(prune.before.micros().saturating_sub(1));
            (empty(conn, &found.events, done_by, cx.now).await?, false)
        }
        Prunable::SpentSignals => drop_rows(conn, sql::RETENTION_PRUNE_SIGNALS, prune).await?,
        Prunable::Audit => drop_rows(conn, sql::RETENTION_PRUNE_AUDIT, prune).await?,
    };
    if let (Some(audit), true) = (&prune.audit, deleted > 0) {
        let scope = prune.scope.as_ref().map_or("", Scope::as_str);
        let about = About { app: prune.app.as_str(), scope };
        audit_write(conn, about, audit, (None, None), cx.now).await?;
    }
    Ok(Pruned { deleted, more: more || (found.more && deleted > 0) })
}

async fn drop_rows(
    conn: &mut SqliteConnection,
    statement: &'static str,
    prune: &Prune,
) -> Result<(u32, bool), Fault> {
    let limit = clamp(prune.limit);
    let dropped = sqlx::query(statement)
        .bind(prune.app.as_str())
        .bind(prune.before.micros())
        .bind(prune.scope.as_ref().map(Scope::as_str))
        .bind(limit)
        .execute(conn)
        .await?;
    let dropped = length(usize::try_from(dropped.rows_affected()).unwrap_or(usize::MAX));
    Ok((dropped, dropped == limit))
}
