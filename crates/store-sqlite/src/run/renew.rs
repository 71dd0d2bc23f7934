//! Lease renewals: the row's lease and nothing else; and who of the leased is to stop.

use sqlx::SqliteConnection;

use surefoot_kernel_core::{RenewRequest, Renewed, RunId, Stamp, StoreError, Timestamp};

use super::read::heads;
use crate::error::Fault;
use crate::sql::{self, pieces};
use crate::writer::{Cx, Lane, Op};

pub(crate) struct Renew(pub(crate) RenewRequest);

impl Op for Renew {
    type Out = Vec<(RunId, Renewed)>;
    type Err = StoreError;
    const LANE: Lane = Lane::Renew;

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Vec<(RunId, Renewed)>, StoreError> {
        Ok(renew(conn, &self.0, cx.now).await?)
    }
}

async fn renew(
    conn: &mut SqliteConnection,
    request: &RenewRequest,
    now: Timestamp,
) -> Result<Vec<(RunId, Renewed)>, Fault> {
    let ids: Vec<RunId> = request.runs.iter().map(|stamp| stamp.run).collect();
    let heads = heads(conn, &ids).await?;
    let until = now.plus(request.lease);
    let mut held = Vec::with_capacity(ids.len());
    let mut answers = Vec::with_capacity(ids.len());
    for stamp in &request.runs {
        let head = heads.get(&stamp.run).and_then(|head| head.as_ref().ok());
        let is_held = head.filter(|head| {
            head.generation == stamp.generation
                && head.lease.as_ref().is_some_and(|lease| lease.owner == request.session)
        });
        let renewed = match is_held {
            None => Renewed::Lost,
            Some(head) => {
                held.push(head.no);
                Renewed::Held { until, canceled: head.canceled }
            }
        };
        answers.push((stamp.run, renewed));
    }
    for piece in pieces(&held) {
        let query = sqlx::query(sql::RUN_RENEW.text(piece.len()));
        let mut query = query.bind(until.micros()).bind(request.lease.get());
        for no in piece {
            query = query.bind(*no);
        }
        query = sql::RUN_RENEW.blank(query, piece.len());
        query.execute(&mut *conn).await?;
    }
    Ok(answers)
}

/// Those whose cancel was requested. A row that cannot be read has its own way to be noticed.
pub(crate) async fn canceled(
    conn: &mut SqliteConnection,
    held: &[Stamp],
) -> Result<Vec<RunId>, Fault> {
    let ids: Vec<RunId> = held.iter().map(|stamp| stamp.run).collect();
    let heads = heads(conn, &ids).await?;
    let is_canceled = |stamp: &&Stamp| {
        let head = heads.get(&stamp.run).and_then(|head| head.as_ref().ok());
        head.is_some_and(|head| head.canceled && head.generation == stamp.generation)
    };
    Ok(held.iter().filter(is_canceled).map(|stamp| stamp.run).collect())
}
