//! Steps of running runs, as nearly all commits are: two statements for many of them.
//!
//! The first says whether all their rows are what the commits were decided on, and have nothing that a step does not
//! look after; then the second writes. Where one is not, all are written the longer way, which finds out which.

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{Commit, JournalText, Lease, Phase, StoreError, Timestamp, Todo};

use super::row::{int, json_opt};
use crate::error::{Fault, Said};
use crate::sql;

/// A commit that is a step and no more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain<'a> {
    commit: &'a Commit,
    journal: &'a JournalText,
    lease: &'a Lease,
}

impl<'a> Plain<'a> {
    /// By what the commit says.
    pub(crate) fn of(commit: &'a Commit) -> Option<Self> {
        let after = &commit.after;
        let means_more = commit.audit.is_some()
            || commit.charge.is_some()
            || after.cancel.is_some()
            || after.resume.is_some()
            || commit.before.has_effect
            || after.generation != commit.before.generation;
        match (&after.phase, &commit.journal) {
            (Phase::Running { todo: Todo::Steps, lease, .. }, Some(journal)) if !means_more => {
                Some(Self { commit, journal, lease })
            }
            (
                Phase::Running { .. }
                | Phase::Queued { .. }
                | Phase::Waiting(_)
                | Phase::NeedsAttention(_)
                | Phase::Succeeded { .. }
                | Phase::Failed { .. }
                | Phase::Canceled { .. },
                _,
            ) => None,
        }
    }
}

/// Writes as many as a statement has rows, all or none; says which.
pub(crate) async fn write(
    conn: &mut SqliteConnection,
    steps: &[Plain<'_>],
    now: Timestamp,
) -> Result<bool, Fault> {
    if !are_plain(conn, steps).await? {
        return Ok(false);
    }
    let mut query = sqlx::query(sql::RUN_PLAIN_WRITE.text(steps.len()));
    for step in steps {
        let run = &step.commit.after;
        query = query
            .bind(run.id.to_bytes().to_vec())
            .bind(int(run.revision))
            .bind(int(run.seq))
            .bind(int(run.journal_bytes))
            .bind(run.failures)
            .bind(run.step_attempt)
            .bind(json_opt(run.deadline.as_ref())?)
            .bind(json_opt(run.charged.as_ref())?)
            .bind(json_opt(run.last_failure.as_ref())?);
    }
    query = sql::RUN_PLAIN_STEP.blank(query, steps.len());
    for step in steps {
        query = query
            .bind(step.commit.after.id.to_bytes().to_vec())
            .bind(int(step.journal.seq))
            .bind(int(step.journal.count))
            .bind(int(step.commit.after.generation))
            .bind(now.micros())
            .bind(&*step.journal.facts);
    }
    query = sql::RUN_PLAIN_JOURNAL.blank(query, steps.len());
    let written = query.execute(conn).await?.rows_affected();
    if written == 2 * steps.len() as u64 {
        return Ok(true);
    }
    let said = Said("steps that were found as they should be were not all written");
    Err(Fault(StoreError::Unavailable(Box::new(said))))
}

async fn are_plain(conn: &mut SqliteConnection, steps: &[Plain<'_>]) -> Result<bool, Fault> {
    let mut query = sqlx::query(sql::RUN_PLAIN.text(steps.len()));
    for Plain { commit, lease, .. } in steps {
        query = query
            .bind(commit.before.run.to_bytes().to_vec())
            .bind(int(commit.before.generation))
            .bind(int(commit.before.revision))
            .bind(lease.until.micros())
            .bind(lease.owner.to_bytes().to_vec())
            .bind(lease.length.get());
    }
    query = sql::RUN_PLAIN.blank(query, steps.len());
    let plain: i64 = query.fetch_one(conn).await?.try_get("plain")?;
    Ok(usize::try_from(plain).is_ok_and(|plain| plain == steps.len()))
}
