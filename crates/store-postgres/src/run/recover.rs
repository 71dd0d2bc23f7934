//! One bounded pass of recovery.

use std::collections::HashSet;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    Commit, Mode, Recovered, RowInput, RunId, Scan, StepKey, StoreError, Timestamp, WorkDue,
    decide_row,
};

use super::read::lock_free_runs;
use super::wake::{wake_all, write_decided};
use crate::child::cancel::carry_on;
use crate::child::settle::make_room;
use crate::clock::StoreClock;
use crate::error::Fault;
use crate::keys::Key;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// No pass touches more runs of one kind in one transaction.
const RECOVER_MAX: u32 = 500;

/// A pass, and what it has found: what somebody else has done since is passed over.
pub(crate) struct Recover {
    pub(crate) scan: Scan,
    pub(crate) due: Due,
}

impl Op for Recover {
    type Out = Recovered;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Recovered, StoreError> {
        Ok(recover(conn, &self.scan, &self.due, cx.now).await?)
    }
}

/// What a pass would look at.
#[derive(Debug, Default)]
pub(crate) struct Due {
    wakes: Vec<RunId>,
    gone: Vec<RunId>,
    /// Groups that have children to let go.
    room: Vec<(RunId, StepKey)>,
    cancels: bool,
    more: bool,
    work: WorkDue,
}

impl Due {
    pub(crate) fn is_empty(&self) -> bool {
        self.wakes.is_empty() && self.gone.is_empty() && self.room.is_empty() && !self.cancels
    }

    pub(crate) fn into_work(self) -> WorkDue {
        WorkDue { recover: !self.is_empty(), ..self.work }
    }

    fn note(&mut self, kind: &str, row: &PgRow) -> Result<(), Fault> {
        match kind {
            "wake" => self.wakes.push(RunId::of_key(row.try_get("id")?)),
            "gone" => self.gone.push(RunId::of_key(row.try_get("id")?)),
            "room" => {
                let step: String = row.try_get("what")?;
                self.room.push((RunId::of_key(row.try_get("id")?), StepKey::from(step)));
            }
            "cancel" => self.cancels = true,
            "event" => self.work.dispatch = true,
            _ => {
                let text: Option<&str> = row.try_get("what")?;
                // One that cannot be read is left out.
                let Some(footprint) = text.and_then(|text| from_stored::<Footprint>(text).ok())
                else {
                    return Ok(());
                };
                if kind == "claim" {
                    self.work.claimable.push(footprint.clone());
                }
                self.work.footprints.push(footprint);
            }
        }
        Ok(())
    }
}

/// What is due now: on a reading connection, so that an idle worker writes nothing.
pub(crate) async fn due(
    conn: &mut PgConnection,
    scan: &Scan,
    mode: Mode,
    clock: &StoreClock,
) -> Result<Due, Fault> {
    let limit = scan.limit.clamp(1, RECOVER_MAX);
    // One more than the limit says whether there are more.
    let ask = i64::from(limit).saturating_add(1);
    let query = sqlx::query(sql::RUN_DUE).bind(scan.app.as_str()).bind(ask).bind(clock.offset());
    let mut due = Due::default();
    for row in query.bind(mode.as_str()).fetch_all(conn).await? {
        due.note(row.try_get("kind")?, &row)?;
    }
    let mut seen = HashSet::new();
    due.wakes.retain(|run| seen.insert(*run));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    due.more = due.wakes.len() > limit || due.gone.len() > limit || due.room.len() > limit;
    due.wakes.truncate(limit);
    due.gone.truncate(limit);
    Ok(due)
}

async fn recover(
    conn: &mut PgConnection,
    scan: &Scan,
    due: &Due,
    now: Timestamp,
) -> Result<Recovered, Fault> {
    let waiting = lock_free_runs(conn, &due.wakes).await?;
    let woken = wake_all(conn, waiting, now).await?;
    let mut decided = Vec::with_capacity(due.gone.len());
    for (head, run) in lock_free_runs(conn, &due.gone).await? {
        if let Ok(facts) = decide_row(&run, RowInput::LeaseGone, now) {
            decided.push((head, Commit::new(&run, &facts), None));
        }
    }
    write_decided(conn, &decided, now).await?;
    let mut finalised: Vec<RunId> = decided.iter().map(|(_, commit, _)| commit.after.id).collect();
    for (parent, step) in &due.room {
        make_room(conn, (*parent, step), &scan.app, now).await?;
    }
    let limit = scan.limit.clamp(1, RECOVER_MAX);
    let carried = carry_on(conn, &scan.app, None, limit, now).await?;
    finalised.extend(carried.canceled);
    sqlx::query(sql::SIGNAL_SETTLE).bind(scan.app.as_str()).execute(conn).await?;
    Ok(Recovered { woken, finalised, more: due.more || carried.more })
}
